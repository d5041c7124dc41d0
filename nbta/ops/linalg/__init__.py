"""Linear algebra: products, factors, spectra, norms, equations."""
