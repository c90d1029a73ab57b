"""How loadgen is given to its users: wheels, images, files for Kubernetes, the site."""
