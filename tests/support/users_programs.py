"""Programs from many fields as their authors wrote them for Numba, or for Python alone.

No line was changed for nbta. `PROGRAMS` has the function, its arguments, and by which of these it
is differentiated.
"""

# ruff: noqa: B007, C901, E741, N803, N806, SIM113  (as users write)

import math

import numpy as np
from numba import njit


@njit
def option(s0, vol, noise):
    n_paths, n_steps = noise.shape
    dt = 1.0 / n_steps
    total = 0.0
    for p in range(n_paths):
        path = np.empty(n_steps + 1)
        path[0] = s0
        knocked = False
        for t in range(n_steps):
            path[t + 1] = path[t] * math.exp(
                (0.02 - 0.5 * vol**2) * dt + vol * math.sqrt(dt) * noise[p, t]
            )
            if path[t + 1] > 1.9 * s0:
                knocked = True
                break
        if not knocked:
            avg = path.mean()
            if avg > 1.0:
                total += avg - 1.0
    return math.exp(-0.02) * total / n_paths


@njit
def forces(pos, f):
    n = pos.shape[0]
    f[:] = 0.0
    pot = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            d = pos[i] - pos[j]
            r2 = np.dot(d, d) + 0.1
            inv = 1.0 / r2
            pot += inv**3 - inv
            g = (6 * inv**4 - 2 * inv**2) * d
            f[i] += g
            f[j] -= g
    return pot


@njit
def verlet(pos0, vel0, dt):
    pos = pos0.copy()
    vel = vel0.copy()
    f = np.zeros_like(pos)
    forces(pos, f)
    for step in range(10):
        vel += 0.5 * dt * f
        pos += dt * vel
        pot = forces(pos, f)
        vel += 0.5 * dt * f
    kin = 0.5 * np.sum(vel * vel)
    return kin + pot


@njit
def viterbi(logA, logB, logpi, obs):
    K = logA.shape[0]
    T = len(obs)
    delta = np.empty((T, K))
    back = np.zeros((T, K), dtype=np.int64)
    for k in range(K):
        delta[0, k] = logpi[k] + logB[k, obs[0]]
    for t in range(1, T):
        for k in range(K):
            best = -np.inf
            arg = 0
            for j in range(K):
                s = delta[t - 1, j] + logA[j, k]
                if s > best:
                    best = s
                    arg = j
            delta[t, k] = best + logB[k, obs[t]]
            back[t, k] = arg
    path = np.zeros(T, np.int64)
    path[T - 1] = np.argmax(delta[T - 1])
    for t in range(T - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    score = logpi[path[0]]
    for t in range(T):
        score += logB[path[t], obs[t]]
    return delta[T - 1].max() + 0.1 * score


@njit
def sdf(p, centre, radius):
    q = p - centre
    return math.sqrt(q[0] ** 2 + q[1] ** 2 + q[2] ** 2) - radius


@njit
def march(centre, radius, width):
    img = np.zeros((width, width))
    light = np.array([0.577, 0.577, -0.577])
    for i in range(width):
        for j in range(width):
            u = 2 * (i + 0.5) / width - 1
            v = 2 * (j + 0.5) / width - 1
            d = np.array([u, v, 1.0])
            d /= np.linalg.norm(d)
            t = 0.0
            hit = False
            for k in range(40):
                p = t * d
                dist = sdf(p, centre, radius)
                if dist < 1e-4:
                    hit = True
                    break
                t += dist
                if t > 10.0:
                    break
            if hit:
                n = (t * d - centre) / radius
                img[i, j] = max(np.dot(n, light), 0.1)
    return img.mean()


@njit
def kmeans(points, centres):
    n, d = points.shape
    k = centres.shape[0]
    loss = 0.0
    for it in range(3):
        sums = np.zeros((k, d))
        counts = np.zeros(k, np.int64)
        loss = 0.0
        for i in range(n):
            best = 0
            best_d = np.inf
            for c in range(k):
                dist = 0.0
                for a in range(d):
                    dist += (points[i, a] - centres[c, a]) ** 2
                if dist < best_d:
                    best_d = dist
                    best = c
            counts[best] += 1
            sums[best] += points[i]
            loss += best_d
        for c in range(k):
            if counts[c] > 0:
                centres[c] = sums[c] / counts[c]
    return loss / n + centres[0, 0]


@njit
def dtw(a, b, window):
    n, m = len(a), len(b)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        lo = max(1, i - window)
        hi = min(m, i + window)
        for j in range(lo, hi + 1):
            cost = abs(a[i - 1] - b[j - 1])
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


@njit
def find(xs, x):
    lo, hi = 0, len(xs) - 1
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if xs[mid] > x:
            hi = mid
        else:
            lo = mid
    return lo


@njit
def spline(xs, ys, q):
    n = len(xs)
    m = np.zeros(n)
    c = np.zeros(n)
    d = np.zeros(n)
    for i in range(1, n - 1):
        h0 = xs[i] - xs[i - 1]
        h1 = xs[i + 1] - xs[i]
        rhs = 6 * ((ys[i + 1] - ys[i]) / h1 - (ys[i] - ys[i - 1]) / h0)
        den = 2 * (h0 + h1) - h0 * c[i - 1]
        c[i] = h1 / den
        d[i] = (rhs - h0 * d[i - 1]) / den
    for i in range(n - 2, 0, -1):
        m[i] = d[i] - c[i] * m[i + 1]
    out = np.empty(len(q))
    for k in range(len(q)):
        x = q[k]
        i = find(xs, x)
        h = xs[i + 1] - xs[i]
        A = (xs[i + 1] - x) / h
        B = 1 - A
        out[k] = A * ys[i] + B * ys[i + 1] + ((A**3 - A) * m[i] + (B**3 - B) * m[i + 1]) * h**2 / 6
    return np.sum(out**2)


@njit
def laplace(u, k):
    n = u.shape[0]
    out = np.zeros_like(u)
    for i in range(n):
        out[i] = (2 + k) * u[i]
        if i > 0:
            out[i] -= u[i - 1]
        if i < n - 1:
            out[i] -= u[i + 1]
    return out


@njit
def cg(b, k):
    x = np.zeros_like(b)
    r = b - laplace(x, k)
    p = r.copy()
    rs = r @ r
    its = 0
    for it in range(50):
        Ap = laplace(p, k)
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        if np.sqrt(rs_new) < 1e-12:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
        its += 1
    return np.sum(x**2)


@njit
def pid(gains, target):
    kp, ki, kd = gains
    pos, vel = 0.0, 0.0
    integral = 0.0
    last = None
    cost = 0.0
    dt = 0.05
    for step in range(60):
        err = target - pos
        integral = min(max(integral + err * dt, -1.0), 1.0)
        deriv = 0.0 if last is None else (err - last) / dt
        u = np.clip(kp * err + ki * integral + kd * deriv, -3.0, 3.0)
        last = err
        acc = u - 0.5 * vel - 0.2 * np.sign(vel) * vel**2
        vel += acc * dt
        pos += vel * dt
        cost += err**2 * dt + 0.001 * u**2
    return cost


@njit
def particle_filter(obs, q, r, noise, u):
    T, N = noise.shape
    x = np.zeros(N)
    ll = 0.0
    for t in range(T):
        x = 0.9 * x + q * noise[t]
        w = np.exp(-0.5 * ((obs[t] - x) / r) ** 2) / r
        ll += np.log(w.mean())
        c = np.cumsum(w / w.sum())
        new = np.empty(N)
        j = 0
        for i in range(N):
            target = (i + u[t]) / N
            while j < N - 1 and c[j] < target:
                j += 1
            new[i] = x[j]
        x = new
    return ll


def rk45(k, y0, tol):
    t, y, h = 0.0, y0, 0.1
    ts, ys = [t], [y]
    rejected = 0
    while t < 2.0:
        h = min(h, 2.0 - t)
        k1 = -k * y + math.sin(t)
        k2 = -k * (y + h / 2 * k1) + math.sin(t + h / 2)
        k3 = -k * (y + 3 * h / 4 * k2) + math.sin(t + 3 * h / 4)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = -k * new + math.sin(t + h)
        err = abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8))
        if err > tol:
            h *= 0.5
            rejected += 1
            continue
        t += h
        y = new
        ts.append(t)
        ys.append(y)
        if err < tol / 10:
            h *= 2
    area = 0.0
    for i in range(1, len(ts)):
        area += (ts[i] - ts[i - 1]) * (ys[i] + ys[i - 1]) / 2
    return area + y


@njit
def gillespie(rates, u):
    state = np.array([20, 0, 0])
    t = 0.0
    acc = 0.0
    for k in range(u.shape[0]):
        a0 = rates[0] * state[0]
        a1 = rates[1] * state[1]
        total = a0 + a1
        if total == 0:
            break
        dt = -math.log(u[k, 0]) / total
        acc += dt * state[1]
        t += dt
        if u[k, 1] * total < a0:
            state[0] -= 1
            state[1] += 1
        else:
            state[1] -= 1
            state[2] += 1
    return acc + t


@njit
def sandpile(h, k):
    a = h.copy()
    topples = 0
    moved = True
    while moved and topples < 200:
        moved = False
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                if a[i, j] >= 4.0:
                    a[i, j] -= 4.0 * k
                    a[i - 1, j] += k
                    a[i + 1, j] += k
                    a[i, j - 1] += k
                    a[i, j + 1] += k
                    topples += 1
                    moved = True
    return np.sum(a**2)


def outliers(x, thresh):
    y = x[np.abs(x - x.mean()) < thresh * x.std()]
    z = np.sort(y)
    q = z[len(z) // 4 : -(len(z) // 4)]
    return q.mean() + y.max()


class Spring:
    """A class with methods."""

    k = 2.0

    def __init__(self, mass, damping=0.1):
        self.mass = mass
        self.damping = damping
        self.history = []

    @property
    def omega(self):
        return math.sqrt(self.k / self.mass)

    @staticmethod
    def clamp(x, lo=-1.0, hi=1.0):
        return lo if x < lo else hi if x > hi else x

    def step(self, x, v, dt):
        a = -self.k * x / self.mass - self.damping * v
        v = v + dt * a
        x = self.clamp(x + dt * v)
        self.history.append(x)
        return x, v

    def __call__(self, x0, n):
        x, v = x0, 0.0
        for _ in range(n):
            x, v = self.step(x, v, 0.1)
        return x * self.omega + max(self.history) - min(self.history)


def spring(mass, x0):
    return Spring(mass)(x0, 25)


@njit
def fft(x):
    n = x.shape[0]
    a = x.astype(np.complex128)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            a[i], a[j] = a[j], a[i]
    size = 2
    while size <= n:
        half = size // 2
        w = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            t = 1.0 + 0j
            for k in range(half):
                u = a[start + k]
                v = a[start + k + half] * t
                a[start + k] = u + v
                a[start + k + half] = u - v
                t *= w
        size *= 2
    s = 0.0
    for k in range(n):
        s += k * (a[k].real ** 2 + a[k].imag ** 2)
    return s


def sgd(w, X, y):
    w = np.array(w)
    velocity = np.zeros_like(w)
    losses = []
    for epoch in range(3):
        for i in range(0, len(X), 4):
            xb, yb = X[i : i + 4], y[i : i + 4]
            err = xb @ w - yb
            grad = 2 * xb.T @ err / len(yb)
            velocity = 0.9 * velocity - 0.05 * grad
            w += velocity
        losses.append(np.mean((X @ w - y) ** 2))
        if len(losses) > 1 and losses[-1] > losses[-2]:
            break
    return losses[-1] + 0.1 * min(losses)


@njit
def event_queue(rates, u):
    clock = 0.0
    nexts = -np.log(u[:3]) / rates
    total = 0.0
    k = 3
    counts = np.zeros(3, dtype=np.int64)
    while clock < 2.0 and k < u.size:
        i = np.argmin(nexts)
        clock = nexts[i]
        counts[i] += 1
        total += clock * (i + 1)
        nexts[i] = clock - math.log(u[k]) / rates[i]
        k += 1
    return total + 0.1 * counts[0]


@njit
def cumulative_hazard(beta, X, t, event):
    order = np.argsort(-t)
    ll = 0.0
    risk = 0.0
    for i in order:
        eta = X[i] @ beta
        risk += math.exp(eta)
        if event[i]:
            ll += eta - math.log(risk)
    return ll


@njit
def american_put(s0, strike, r, sigma, n_space=12, n_time=4):
    s_max = 3.0 * strike
    ds = s_max / n_space
    dt = 1.0 / n_time
    v = np.zeros(n_space + 1)
    payoff = np.zeros(n_space + 1)
    for i in range(n_space + 1):
        payoff[i] = max(strike - i * ds, 0.0)
        v[i] = payoff[i]
    a = np.zeros(n_space + 1)
    b = np.zeros(n_space + 1)
    c = np.zeros(n_space + 1)
    for i in range(1, n_space):
        s2 = sigma * sigma * i * i
        a[i] = 0.5 * dt * (r * i - s2)
        b[i] = 1.0 + dt * (s2 + r)
        c[i] = -0.5 * dt * (r * i + s2)
    iterations = 0
    for t in range(n_time):
        rhs = v.copy()
        for sweep in range(20):
            change = 0.0
            for i in range(1, n_space):
                gs = (rhs[i] - a[i] * v[i - 1] - c[i] * v[i + 1]) / b[i]
                new = max(payoff[i], v[i] + 1.2 * (gs - v[i]))
                change = max(change, abs(new - v[i]))
                v[i] = new
            iterations += 1
            if change < 1e-7:
                break
        v[0] = strike
        v[n_space] = 0.0
    j = int(s0 / ds)
    w = (s0 - j * ds) / ds
    return (1 - w) * v[j] + w * v[j + 1]


@njit
def gotoh(a, b, sub, gap_open, gap_ext):
    n, m = len(a), len(b)
    neg = -1e9
    M = np.full((n + 1, m + 1), neg)
    X = np.full((n + 1, m + 1), neg)
    Y = np.full((n + 1, m + 1), neg)
    M[0, 0] = 0.0
    for i in range(1, n + 1):
        X[i, 0] = gap_open + (i - 1) * gap_ext
    for j in range(1, m + 1):
        Y[0, j] = gap_open + (j - 1) * gap_ext
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = sub[a[i - 1], b[j - 1]]
            M[i, j] = s + max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1])
            X[i, j] = max(M[i - 1, j] + gap_open, X[i - 1, j] + gap_ext)
            Y[i, j] = max(M[i, j - 1] + gap_open, Y[i, j - 1] + gap_ext)
    # traceback
    i, j = n, m
    state = 0
    best = M[n, m]
    if X[n, m] > best:
        best, state = X[n, m], 1
    if Y[n, m] > best:
        best, state = Y[n, m], 2
    matches = 0
    while i > 0 and j > 0:
        if state == 0:
            if a[i - 1] == b[j - 1]:
                matches += 1
            prev = max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1])
            i -= 1
            j -= 1
            if prev == M[i, j]:
                state = 0
            elif prev == X[i, j]:
                state = 1
            else:
                state = 2
        elif state == 1:
            if X[i, j] == M[i - 1, j] + gap_open:
                state = 0
            i -= 1
        else:
            if Y[i, j] == M[i, j - 1] + gap_open:
                state = 0
            j -= 1
    return best + 0.01 * matches


@njit
def dsp_chain(x, coefs, attack, release):
    n_sections = coefs.shape[0]
    y = x.copy()
    for s in range(n_sections):
        b0, b1, b2, a1, a2 = coefs[s]
        z1 = 0.0
        z2 = 0.0
        for n in range(len(y)):
            xin = y[n]
            out = b0 * xin + z1
            z1 = b1 * xin - a1 * out + z2
            z2 = b2 * xin - a2 * out
            y[n] = out
    env = np.empty(len(y))
    level = 0.0
    for n in range(len(y)):
        mag = abs(y[n])
        coef = attack if mag > level else release
        level = coef * level + (1 - coef) * mag
        env[n] = level
    gain = np.where(env > 0.3, 0.3 / np.maximum(env, 1e-9), 1.0)
    w = np.zeros(4)
    mu = 0.1
    err = 0.0
    for n in range(4, len(y)):
        window = y[n - 4 : n][::-1]
        pred = np.dot(w, window)
        e = y[n] * gain[n] - pred
        w += mu * e * window / (1e-3 + window @ window)
        err += e * e
    return err / len(y)


@njit
def normalize(v):
    return v / np.sqrt(np.sum(v * v))


@njit
def intersect(origin, direction, centre, radius):
    oc = origin - centre
    b = 2.0 * np.dot(direction, oc)
    c = np.dot(oc, oc) - radius * radius
    disc = b * b - 4 * c
    if disc > 0:
        t1 = (-b + math.sqrt(disc)) / 2
        t2 = (-b - math.sqrt(disc)) / 2
        if t1 > 0 and t2 > 0:
            return min(t1, t2)
    return -1.0


@njit
def render(centres, radii, colors, light, size=4):
    camera = np.array([0.0, 0.0, 1.0])
    img = np.zeros((size, size, 3))
    n = len(radii)
    for i, yy in enumerate(np.linspace(-1, 1, size)):
        for j, xx in enumerate(np.linspace(-1, 1, size)):
            origin = camera
            direction = normalize(np.array([xx, yy, 0.0]) - origin)
            color = np.zeros(3)
            reflection = 1.0
            for bounce in range(2):
                nearest = -1
                min_t = np.inf
                for k in range(n):
                    t = intersect(origin, direction, centres[k], radii[k])
                    if t > 0 and t < min_t:
                        min_t = t
                        nearest = k
                if nearest == -1:
                    break
                hit = origin + min_t * direction
                normal = normalize(hit - centres[nearest])
                shifted = hit + 1e-5 * normal
                to_light = normalize(light - shifted)
                shadowed = False
                for k in range(n):
                    t = intersect(shifted, to_light, centres[k], radii[k])
                    if t > 0:
                        shadowed = True
                        break
                if shadowed:
                    break
                illum = 0.1 + 0.6 * max(0.0, np.dot(to_light, normal))
                half = normalize(to_light - direction)
                illum += 0.4 * max(0.0, np.dot(normal, half)) ** 10
                color += reflection * illum * colors[nearest]
                reflection *= 0.5
                origin = shifted
                direction = direction - 2 * np.dot(direction, normal) * normal
            img[i, j] = np.clip(color, 0, 1)
    return img.mean()


@njit
def seir(beta, sigma, gamma, contact, s0, days):
    n_age = len(s0)
    S = s0.copy()
    E = np.zeros(n_age)
    I = np.full(n_age, 1e-3)
    R = np.zeros(n_age)
    history = []
    lockdown = False
    factor = 1.0
    for day in range(days):
        total = I.sum()
        if not lockdown and total > 0.02:
            lockdown = True
            factor = 0.4
        elif lockdown and total < 0.01:
            lockdown = False
            factor = 1.0
        for sub in range(4):
            force = np.zeros(n_age)
            for a in range(n_age):
                for b in range(n_age):
                    force[a] += factor * beta * contact[a, b] * I[b]
            new_e = 0.25 * force * S
            new_i = 0.25 * sigma * E
            new_r = 0.25 * gamma * I
            S -= new_e
            E += new_e - new_i
            I += new_i - new_r
            R += new_r
        history.append(I.sum())
    peak = max(history)
    return peak + R.sum() + 0.1 * history[-1]


@njit
def power_at(x, f0):
    n = len(x)
    a = np.zeros(n, dtype=np.complex128)
    levels = 0
    while (1 << levels) < n:
        levels += 1
    for i in range(n):
        j = 0
        k = i
        for _ in range(levels):
            j = (j << 1) | (k & 1)
            k >>= 1
        a[j] = x[i]
    size = 2
    while size <= n:
        half = size // 2
        step = -2j * math.pi / size
        for start in range(0, n, size):
            for k in range(half):
                t = np.exp(step * k) * a[start + k + half]
                a[start + k + half] = a[start + k] - t
                a[start + k] = a[start + k] + t
        size *= 2
    p = a.real**2 + a.imag**2
    freqs = np.arange(n // 2)
    return np.sum(p[: n // 2] * np.exp(-((freqs - f0) ** 2))) / n


def clip_area(poly, box):
    xmin, ymin, xmax, ymax = box
    points = [(p[0], p[1]) for p in poly]
    for edge in range(4):
        out = []
        prev = points[-1]
        for cur in points:
            if edge == 0:
                ci, pi, t = (
                    cur[0] >= xmin,
                    prev[0] >= xmin,
                    (xmin - prev[0]) / (cur[0] - prev[0] + 1e-30),
                )
            elif edge == 1:
                ci, pi, t = (
                    cur[0] <= xmax,
                    prev[0] <= xmax,
                    (xmax - prev[0]) / (cur[0] - prev[0] + 1e-30),
                )
            elif edge == 2:
                ci, pi, t = (
                    cur[1] >= ymin,
                    prev[1] >= ymin,
                    (ymin - prev[1]) / (cur[1] - prev[1] + 1e-30),
                )
            else:
                ci, pi, t = (
                    cur[1] <= ymax,
                    prev[1] <= ymax,
                    (ymax - prev[1]) / (cur[1] - prev[1] + 1e-30),
                )
            cross = (prev[0] + t * (cur[0] - prev[0]), prev[1] + t * (cur[1] - prev[1]))
            if ci:
                if not pi:
                    out.append(cross)
                out.append(cur)
            elif pi:
                out.append(cross)
            prev = cur
        points = out
    area = 0.0
    for k in range(len(points)):
        x1, y1 = points[k]
        x2, y2 = points[(k + 1) % len(points)]
        area += x1 * y2 - x2 * y1
    return 0.5 * abs(area)


@njit
def inventory(demand, s, S, lead, hold, short):
    stock = S
    pipeline = np.zeros(lead + 1)
    cost = 0.0
    n_orders = 0
    for t in range(demand.shape[0]):
        stock += pipeline[0]
        pipeline[:-1] = pipeline[1:]
        pipeline[-1] = 0.0
        if demand[t] > stock:
            cost += short * (demand[t] - stock)
            stock = 0.0
        else:
            stock -= demand[t]
            cost += hold * stock
        position = stock + pipeline.sum()
        if position < s:
            pipeline[-1] += S - position
            cost += 1.0
            n_orders += 1
    return cost / demand.shape[0]


def _row(generator):
    return generator / generator.sum(axis=-1, keepdims=True)


def _programs():
    rng = np.random.default_rng(0)
    a, b = _row(rng.uniform(0.1, 1.0, (3, 3))), _row(rng.uniform(0.1, 1.0, (3, 4)))
    first, seen = np.log([0.5, 0.3, 0.2]), rng.integers(0, 4, 8)
    return [
        (option, (1.0, 0.3, rng.normal(size=(6, 12))), (0, 1)),
        (verlet, (rng.normal(size=(4, 3)), rng.normal(size=(4, 3)) * 0.1, 0.01), (0, 1, 2)),
        (viterbi, (np.log(a), np.log(b), first, seen), (0, 1, 2)),
        (march, (np.array([0.1, -0.05, 3.0]), 1.2, 6), (0, 1)),
        (kmeans, (rng.normal(size=(12, 2)), rng.normal(size=(3, 2))), (0, 1)),
        (dtw, (rng.normal(size=9), rng.normal(size=11), 4), (0, 1)),
        (spline, (np.linspace(0, 1, 7), rng.normal(size=7), rng.uniform(0, 1, 9)), (0, 1, 2)),
        (cg, (rng.normal(size=12), 0.3), (0, 1)),
        (pid, ((2.0, 0.5, 0.8), 1.0), (0, 1)),
        (
            particle_filter,
            (rng.normal(size=6), 0.5, 0.7, rng.normal(size=(6, 8)), rng.uniform(size=6)),
            (0, 1, 2),
        ),
        (rk45, (2.0, 1.0, 1e-3), (0, 1)),
        (gillespie, (np.array([1.0, 0.5]), rng.uniform(size=(30, 2))), (0,)),
        (sandpile, (rng.uniform(0, 6, (6, 6)), 1.0), (0, 1)),
        (outliers, (rng.normal(size=20), 1.5), (0,)),
        (spring, (1.3, 0.8), (0, 1)),
        (fft, (rng.normal(size=8),), (0,)),
        (sgd, (rng.normal(size=3), rng.normal(size=(12, 3)), rng.normal(size=12)), (0, 1, 2)),
        (event_queue, (np.array([1.0, 2.0, 0.7]), rng.uniform(size=20)), (0,)),
        (
            cumulative_hazard,
            (
                rng.normal(size=2),
                rng.normal(size=(9, 2)),
                rng.uniform(size=9),
                seen[[*range(8), 0]] > 1,
            ),
            (0, 1),
        ),
        *_more_programs(rng),
    ]


def _more_programs(rng):
    sections = np.array([[0.3, 0.2, 0.1, -0.5, 0.2], [0.9, -0.2, 0.05, 0.1, 0.02]])
    centres = np.array([[-0.2, 0.0, -1.0], [0.4, -0.3, -0.5]])
    contact = np.array([[2.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 0.8]])
    one, other = np.array([0, 1, 2, 3, 1]), np.array([0, 2, 3, 1])
    scores = np.eye(4) * 2 - 1 + 0.1 * rng.uniform(size=(4, 4))
    polygon = np.array([[0.1, -0.3], [1.4, 0.2], [1.1, 1.3], [-0.2, 0.8]])
    return [
        (american_put, (1.02, 1.0, 0.05, 0.3), (0, 1, 2, 3)),
        (gotoh, (one, other, scores, -1.51, -0.52), (2, 3, 4)),
        (dsp_chain, (rng.normal(size=24), sections, 0.6, 0.9), (0, 1, 2, 3)),
        (
            render,
            (centres, np.array([0.7, 0.3]), rng.uniform(0.2, 1, (2, 3)), np.array([3.0, 4.0, 5.0])),
            (0, 1, 2, 3),
        ),
        (seir, (0.5, 0.3, 0.2, contact, np.array([0.3, 0.4, 0.3]), 20), (0, 1, 2, 3, 4)),
        (power_at, (rng.normal(size=16), 3.2), (0, 1)),
        (clip_area, (polygon, (0.0, 0.0, 1.0, 1.0)), (0,)),
        (inventory, (rng.uniform(0.5, 3, 20), 3.1, 8.2, 3, 0.1, 2.0), (0, 1, 2, 4, 5)),
    ]


PROGRAMS = _programs()
