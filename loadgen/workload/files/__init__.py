"""Files of data sets: downloads, hashes, rows, and what is kept between runs."""
