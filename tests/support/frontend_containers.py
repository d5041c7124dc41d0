"""What Python's containers, iterators and objects hold, which loops, branches and functions change.

Each program may be refused, by an error that names the file, but gives no other number than Python.
"""

# ruff: noqa: B905, C408, C417, E741, F841, RUF005, RUF015  (as users write)

import bisect
import copy
import functools
import heapq
import itertools
import operator
import queue
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from dataclasses import dataclass, field

import numpy as np

CONTAINERS = []
X = np.linspace(0.2, 1.4, 12)


def container(function):
    """Note a program of twelve numbers."""
    CONTAINERS.append(function)
    return function


@container
def heapified_list(x):
    s = [3.0, 1.0, 2.0]
    heapq.heapify(s)
    return x.sum() * s[0]


@container
def list_with_an_item_put_in_order(x):
    s = [1.0, 3.0]
    bisect.insort(s, 2.0)
    return x.sum() * s[1]


@container
def method_of_the_class_list(x):
    s = []
    list.append(s, 2.0)
    return x.sum() * len(s)


@container
def item_set_by_operator(x):
    s = [1.0]
    operator.setitem(s, 0, 4.0)
    return x.sum() * s[0]


@container
def shuffled_array(x):
    a = np.arange(5.0)
    np.random.default_rng(0).shuffle(a)
    return x.sum() * a[0]


@container
def item_set_by_its_special_method(x):
    s = [1.0]
    for v in x:
        s.__setitem__(0, s[0] * v)
    return s[0]


@container
def window_of_the_last_items(x):
    w = deque([0.0] * 3, maxlen=3)
    out = 0.0
    for v in x:
        w.append(v)
        out = out + w[0] * w[-1]
    return out


@container
def first_in_first_out(x):
    w = deque([1.0, 2.0])
    out = 0.0
    for v in x:
        w.append(v)
        out = out + w.popleft() * v
    return out


@container
def rotated_deque(x):
    w = deque([1.0, 2.0, 3.0])
    out = 0.0
    for v in x:
        w.rotate(1)
        out = out + w[0] * v
    return out


@container
def deque_changed_in_a_branch(x):
    w = deque([1.0, 2.0])
    if x[0] > 0:
        w.append(3.0)
        w.popleft()
    return w[0] * x.sum()


@container
def queue_that_is_empty_again(x):
    q = queue.Queue()
    out = 0.0
    for v in x:
        q.put(v)
        out = out + q.get()
    return out


@container
def queue_with_an_item(x):
    q = queue.Queue()
    q.put(1.0)
    out = 0.0
    for v in x:
        q.put(v)
        out = out + q.get()
    return out


@container
def counter_that_begins_empty(x):
    c = Counter()
    out = 0.0
    for i in range(len(x)):
        c.update(["a"])
        out = out + c["a"] * x[i]
    return out


@container
def order_moved_and_moved_back(x):
    d = OrderedDict(a=1.0, b=2.0)
    out = 0.0
    for v in x:
        d.move_to_end("a")
        k = next(iter(d))
        out = out + v * d[k]
        d.move_to_end("b")
    return out


@container
def order_that_iterations_change(x):
    d = OrderedDict(a=1.0, b=2.0)
    out = 0.0
    for v in x:
        out = out + v * d[next(iter(d))]
        d.move_to_end(next(iter(d)))
    return out


@container
def set_that_loses_and_finds(x):
    s = {1, 2}
    out = 0.0
    for v in x:
        s.symmetric_difference_update({1})
        out = out + v * len(s)
    return out


@container
def userlist_that_grows(x):
    s = UserList([0.0])
    out = 0.0
    for v in x:
        s.append(v)
        out = out + v * len(s)
    return out


@container
def chained_maps(x):
    c = ChainMap({}, {"a": 1.0})
    out = 0.0
    for v in x:
        c["a"] = c["a"] + 1.0
        out = out + v * c["a"]
    return out


@container
def bytes_that_count(x):
    b = bytearray(b"ab")
    out = 0.0
    for v in x:
        b[0] = (b[0] + 1) % 256
        out = out + v * b[0]
    return out


@container
def default_of_a_dict(x):
    d = defaultdict(float)
    out = 0.0
    for v in x:
        d["k"] += v
        out = out + d["k"] * v
    return out


@container
def set_joined_in_place(x):
    s = set()
    out = 0.0
    for i in range(len(x)):
        s |= {i % 3}
        out = out + x[i] * len(s)
    return out


@container
def copy_of_a_list(x):
    out = 0.0
    for v in x:
        l = copy.copy([1.0])
        l.append(v)
        out = out + l[0] * l[1]
    return out


class Total:
    total = 0.0

    def add(self, v):
        self.total += v


class Vector:
    def __init__(self, a):
        self.a = a

    def __setitem__(self, k, v):
        self.a[k] = v

    def __getitem__(self, k):
        return self.a[k]

    def __iadd__(self, o):
        self.a = self.a + o
        return self


@container
def list_of_an_object_replaced_and_changed(x):
    s = Vector([0.0, 1.0])
    out = 0.0
    for v in x:
        s[0] = s[0] + v
        s += [v] if False else []
        out = out + s[0] * v
    return out


@container
def dict_filled_by_setdefault(x):
    d = {}
    out = 0.0
    for v in x:
        d.setdefault("n", 0.0)
        d.update(n=d["n"] + v)
        out = out + d["n"] * v
    return out


@container
def attribute_set_by_object(x):
    a = Total()
    out = 0.0
    for v in x:
        object.__setattr__(a, "total", a.total + v)
        out = out + a.total * v
    return out


@container
def list_changed_and_replaced(x):
    a = [0.0, 1.0]
    out = 0.0
    for v in x:
        a[0] = a[0] + v
        a = a + []
        out = out + a[0] * v
    return out


@container
def list_joined_in_place_then_read(x):
    labels = np.array([0, 2, 2, 1])
    ext = [4]
    for l in labels:
        ext += [l, 4]
    out = 0.0
    for s in range(len(ext)):
        out = out + x[ext[s]]
    return out


@container
def list_joined_in_place_by_each_iteration(x):
    ext = [4]
    for l in x:
        ext += [l, 4]
    out = 0.0
    for s in range(len(ext)):
        out = out + ext[s]
    return out


@container
def two_lists_swapped(x):
    prev = [0.0, 1.0, 2.0]
    cur = [0.0, 0.0, 0.0]
    for v in x:
        for j in range(3):
            cur[j] = prev[j] * 0.5 + v * j
        prev, cur = (cur, prev)
    return prev[0] + 2 * prev[1] + 3 * prev[2]


@container
def list_under_two_names_replaced(x):
    a = [0.0, 1.0]
    b = a
    out = 0.0
    for v in x:
        a[0] = a[0] + v
        out = out + b[0] * v
        a = a + []
    return out


@container
def list_under_two_names_changed(x):
    a = [0.0, 1.0]
    b = a
    out = 0.0
    for v in x:
        a[0] = a[0] + v
        out = out + b[0] * v
    return out + b[0]


@container
def list_that_a_branch_replaces(x):
    a = [0.0, 1.0]
    b = a
    out = 0.0
    if x[0] > 0:
        a = [2.0, 3.0]
    a[0] = 7.0 * x[1]
    return b[0] + a[0]


@container
def one_of_two_lists(x):
    a = [0.0, 1.0]
    b = [2.0, 3.0]
    c = a
    if x[0] > 0:
        c = b
    c[0] = 7.0 * x[1]
    return b[0] + 10 * a[0]


@container
def one_of_two_dicts(x):
    a = dict(k=0.0)
    b = dict(k=1.0)
    c = a
    if x[0] > 0:
        c = b
    c["k"] = 7.0 * x[1]
    return b["k"] + 10 * a["k"]


@container
def rows_in_another_order(x):
    rows = [[0.0, 1.0], [2.0, 3.0]]
    for v in x:
        r = rows[0]
        r[0] = r[0] + v
        rows = [rows[1], rows[0]]
    return rows[0][0] + 10 * rows[1][0]


@container
def best_list_so_far(x):
    best = [0.0, 0.0]
    cur = [0.0, 0.0]
    for v in x:
        cur[0] = cur[0] + v
        cur[1] = v
        if cur[0] > best[0]:
            best = cur
    return best[0] + 10 * best[1]


@container
def copy_of_the_best_list_so_far(x):
    best = [0.0, 0.0]
    cur = [0.0, 0.0]
    for v in x:
        cur[0] = cur[0] + v
        cur[1] = v
        if cur[0] > best[0]:
            best = cur[:]
    return best[0] + 10 * best[1]


@container
def best_dict_so_far(x):
    best = {"a": 0.0}
    cur = {"a": 0.0}
    for v in x:
        cur["a"] = cur["a"] + v
        if cur["a"] > best["a"]:
            best = cur
    return best["a"]


@container
def list_given_to_a_function(x):
    a = [x, x * 2.0]

    def f(l):
        l[0] = l[0] + 1.0
        l = [l[1], l[0]]
        l[0] = l[0] * 2.0
        return l

    b = f(a)
    return a[0].sum() + 10 * b[0].sum() + 100 * a[1].sum() + 1000 * b[1].sum()


@container
def lists_swapped_by_a_branch(x):
    a = [1.0]
    b = [2.0]
    if x[0] > 0:
        a, b = (b, a)
    a[0] = a[0] + x[1]
    return a[0] + 10 * b[0]


@container
def lists_swapped_by_a_branch_under_a_third_name(x):
    a = [1.0]
    b = [2.0]
    c = a
    if x[0] > 0:
        a, b = (b, a)
    a[0] = a[0] + x[1]
    return c[0]


@container
def one_of_two_lists_by_an_expression(x):
    a = [1.0]
    b = [2.0]
    c = a if x[0] > 0 else b
    c[0] = 5.0 * x[1]
    return a[0] + 10 * b[0]


@container
def order_by_pop(x):
    d = {"a": 1.0, "b": 2.0}
    out = 0.0
    for v in x:
        first = d.pop("a")
        d["a"] = first + v
        out = out + v * next(iter(d.values()))
    return out


@container
def order_by_del(x):
    d = {"a": 1.0, "b": 2.0}
    out = 0.0
    for v in x:
        first = d["a"]
        del d["a"]
        d["a"] = first + v
        out = out + v * list(d.values())[0]
    return out


@container
def iterator_of_before(x):
    it = iter([1.0, 2.0, 3.0])
    out = 0.0
    for v in x:
        for w in it:
            out = out + w * v
    return out


@container
def zip_of_before(x):
    it = zip([1.0, 2.0], [3.0, 4.0])
    out = 0.0
    for v in x:
        for a, b in it:
            out = out + a * b * v
    return out


@container
def map_of_before(x):
    it = map(lambda q: q * 2, [1.0, 2.0])
    out = 0.0
    for v in x:
        out = out + v * sum(it)
    return out


@container
def generator_expression_of_before(x):
    it = (q * 2 for q in [1.0, 2.0])
    out = 0.0
    for v in x:
        for w in it:
            out = out + v * w
    return out


@container
def iterator_made_a_list(x):
    it = iter([1.0, 2.0])
    out = 0.0
    for v in x:
        out = out + v * len(list(it))
    return out


@container
def enumerate_of_before(x):
    it = enumerate([1.0, 2.0])
    out = 0.0
    for v in x:
        for i, w in it:
            out = out + v * w * i
    return out


@container
def iterator_in_a_branch(x):
    it = iter([1.0, 2.0])
    out = 0.0
    if x[0] > 100:
        for w in it:
            out = out + w
    for w in it:
        out = out + 10 * w
    return out


class Counting:
    def __init__(self, n):
        self.n = n
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i * 1.0


@container
def iterator_of_a_class(x):
    out = 0.0
    for v in Counting(3):
        out = out + v * x[int(v)]
    return out


@container
def iterator_of_a_class_of_before(x):
    it = Counting(3)
    out = 0.0
    for v in x:
        for w in it:
            out = out + w * v
    return out


class Counted:
    reads = 0

    def __init__(self, a):
        self.a = a

    def __getitem__(self, i):
        self.reads = self.reads + 1
        return self.a[i]

    def __mul__(self, o):
        self.reads += 10
        return self.a * o

    def __rmul__(self, o):
        self.reads += 100
        return self.a * o

    def __len__(self):
        self.reads += 1000
        return 3

    def __lt__(self, o):
        self.reads += 10000
        return self.a[0] < o


@container
def object_that_counts_what_is_done(x):
    c = Counted(x)
    out = 0.0
    for i in range(len(x)):
        out = out + c[i]
        out = out + (c * 2.0)[0] + (3.0 * c)[1] + len(c)
        if c < 0.5:
            out = out + 1.0
    return out + c.reads


class Logs:
    def __setattr__(self, k, v):
        object.__setattr__(self, "n", getattr(self, "n", 0) + 1)
        object.__setattr__(self, k, v)


@container
def object_that_counts_assignments(x):
    l = Logs()
    l.q = 0.0
    for v in x:
        l.q = l.q + v
    return l.q * l.n


@container
def deep_copy_of_a_dict(x):
    d = {"a": [x * 1.0, 2.0], "b": {"c": x[0]}}
    e = copy.deepcopy(d)
    e["a"][0][0] = 5.0
    e["b"]["c"] = 3.0
    e["a"].append(4.0)
    return (
        d["a"][0].sum()
        + e["a"][0].sum() * 10
        + d["b"]["c"]
        + e["b"]["c"]
        + len(d["a"])
        + len(e["a"])
    )


@container
def deep_copy_in_a_loop(x):
    s = [0.0, 1.0]
    out = 0.0
    for v in x:
        t = copy.deepcopy(s)
        t[0] = t[0] + v
        out = out + t[0] + s[0]
        s[1] = s[1] + t[0]
    return out + s[1]


class Pair:
    def __init__(self, a):
        self.a = a
        self.l = [a]


@container
def copies_of_an_object(x):
    p = Pair(x * 1.0)
    q = copy.copy(p)
    r = copy.deepcopy(p)
    q.a = x * 3.0
    r.a[0] = 7.0
    r.l[0][1] = 9.0
    return p.a.sum() + 10 * q.a.sum() + 100 * r.a.sum() + p.l[0].sum() + 1000 * r.l[0].sum()


@container
def recursion_with_a_cache(x):

    @functools.cache
    def fib(n):
        return x[n] if n < 2 else fib(n - 1) * 0.5 + fib(n - 2)

    return fib(30)


@container
def calls_with_a_cache(x):
    seen = []

    @functools.cache
    def f(i):
        seen.append(i)
        return i * 2.0

    out = 0.0
    for i in range(4):
        out = out + f(i % 2) * x[i]
    return out * len(seen)


@container
def array_of_a_deque(x):
    d = deque([x[0], x[1], x[2]], maxlen=3)
    d.append(x[3])
    return np.sum(np.array(d) ** 2) + np.mean(d)


@container
def items_of_a_rotated_deque(x):
    d = deque([0.0, 1.0, 2.0])
    out = 0.0
    for v in x:
        d[1] = d[1] + v
        out = out + d[-1] * d[1]
        d.rotate(1)
    return out


@container
def loop_over_a_deque(x):
    d = deque([0.0, 1.0, 2.0], maxlen=3)
    out = 0.0
    for v in x:
        d.appendleft(v)
        for w in d:
            out = out + w * v
        out = out + max(d) + sum(d) + len(d)
    return out


@container
def userdict(x):
    d = UserDict(a=0.0)
    out = 0.0
    for v in x:
        d["a"] = d["a"] + v
        out = out + d["a"] * v
    return out


@container
def ordered_dict(x):
    d = OrderedDict()
    d["a"] = x[0]
    d["b"] = x[1]
    for v in x:
        d["a"] = d["a"] * v
    return d["a"] + d["b"]


@dataclass
class Particle:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0

    def energy(self):
        return 0.5 * self.mass * np.dot(self.vel, self.vel)


@container
def objects_of_a_list_by_a_name_of_a_comprehension_too(x):
    particles = [Particle(x[2 * i : 2 * i + 2], x[i : i + 2], 1.0 + i) for i in range(4)]
    for _ in range(20):
        forces = [np.zeros(2) for _ in particles]
        for (i, a), (j, b) in itertools.combinations(enumerate(particles), 2):
            apart = b.pos - a.pos
            far = np.linalg.norm(apart) + 1e-3
            force = (far - 1.0) * apart / far
            forces[i] = forces[i] + force
            forces[j] = forces[j] - force
        for p, force in zip(particles, forces):
            p.vel = p.vel + 0.01 * force / p.mass
            p.pos = p.pos + 0.01 * p.vel
    return sum(p.energy() for p in particles)


@container
def names_of_inner_functions(x):
    def norm(v):
        p = v * v
        return sum(q * p for q in [1.0, 2.0])

    total, pairs = 0.0, [Particle(x[:2], x[2:4]), Particle(x[4:6], x[6:8])]
    for v in x:
        for p in pairs:
            p.vel = p.vel * norm(v)
        for q in pairs:
            total = total + q.energy()
    return total


@dataclass
class Track:
    x: float = 0.0
    past: list = field(default_factory=list)

    def add(self, v):
        self.x += v
        self.past.append(self.x)


@container
def list_of_a_field_that_grows(x):
    track = Track()
    for v in x:
        track.add(v)
    return track.x + np.array(track.past).sum()


@container
def list_given_to_a_field(x):
    given = []
    track = Track(0.0, given)
    track.add(x[0])
    return track.x + len(given)


@container
def default_that_only_the_run_knows(x):
    d = {"p": 1.0}
    for v in x:
        d["p"] = d.setdefault("p", v) + v
    return d["p"]


@container
def list_changed_after_its_new_name(x):
    first, other = [0.2, x[2]], [5.0, 6.0]
    same = first
    if x[0] < 10.0:
        other = same
        first[1] = x[1] * 3.0
    return other[1] + first[1]


@container
def list_reversed_after_its_new_name(x):
    first, other = [1.2, 0.1, x[2]], [1.0, 2.0, 3.0]
    same = first
    if x[0] < 10.0:
        other = same
        first.reverse()
    return other[0] + 10.0 * first[0]


@container
def dict_joined_and_copied_in_a_branch(x):
    d = {"p": -0.9, "q": x[0]}
    if x[0] < 10.0:
        d |= {"q": x[1] * x[1]}
        d = d.copy()
    for key in d:
        d[key] = d[key] * 0.9
    return d["q"]


@container
def item_set_by_the_class_of_a_list_that_shrinks(x):
    items = [0.1, 0.2, x[2]]
    if x[0] < 10.0:
        list.__setitem__(items, 1, x[1])
    else:
        items.pop()
    return items[1]


@container
def iterator_of_a_class_that_the_run_ends(x):
    total = 0.0
    for v in x:
        for w in Counting(v + 2.0):
            total = total + w * v
    return total
