"""Storage: the jitclass store, its kernels and their use inside ``@njit`` code."""
