"""The screenshots of docs/pictures: pages, reports and the live view of saved results."""
