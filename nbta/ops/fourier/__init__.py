"""Functions given by samples or coefficients: transforms, convolutions, polynomials."""
