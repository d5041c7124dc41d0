"""Lists that loops make longer and whose items change: stacks, queues, counts, rows, histories.

Each program may be refused, by an error that names the file, but gives no other number than Python.
"""

# ruff: noqa: B905, RUF005, RUF007  (as users write)

import math
from collections import deque

import numpy as np

LISTS = []
X = np.array([0.3, 0.8, -0.4, 1.1, 0.6, -0.9, 0.25, 1.3, -0.2, 0.7, 0.45, -0.6])


def lists(function):
    """Note a program of twelve numbers."""
    LISTS.append(function)
    return function


@lists
def last_added_to(x):
    xs = []
    for v in x:
        xs.append(0.0)
        xs[-1] += v * v
    return sum(xs)


@lists
def last_added_to_by_an_inner_loop(x):
    xs = []
    for v in x:
        xs.append(1.0)
        for w in x:
            xs[-1] += v * w
        xs[-1] *= 0.5
    return np.array(xs).sum() + xs[3]


@lists
def item_assigned_by_a_number_of_the_run(x):
    xs = []
    for i in range(len(x)):
        xs.append(x[i])
        xs[i // 2] = xs[i // 2] * np.sin(x[i])
    return sum(xs) + xs[0] * xs[1]


@lists
def items_assigned_from_the_end(x):
    xs = [0.5, 0.25]
    for v in x:
        xs.append(v)
        xs[-1], xs[-2] = xs[-2] * v, xs[-1] + 1.0
        xs[-3] -= v
    return np.sum(np.array(xs) ** 2)


@lists
def counted(x):
    counts, total = [], 0.0
    for v in x:
        counts.append(0)
        k = int(v * 3) % len(counts)
        counts[k] += 1
        total += v * counts[k]
    return total + counts[0] * x[0]


@lists
def weights_under_numbers(x):
    weights = [0.0]
    for i, v in enumerate(x):
        if i % 3 == 0:
            weights.append(0.0)
        weights[i % len(weights)] += v * v
    return weights[0] * weights[1] + sum(weights)


@lists
def assigned_after_the_loop(x):
    xs = []
    for v in x:
        xs.append(v * v)
    xs[0] = xs[1] * 2.0
    xs[-1] *= x[0]
    return sum(xs) * xs[0]


@lists
def assigned_in_a_second_loop(x):
    xs = []
    for v in x:
        xs.append(v)
    for i in range(1, len(xs)):
        xs[i] += 0.5 * xs[i - 1] * xs[i]
    return xs[-1] + xs[5]


@lists
def assigned_by_enumerate(x):
    xs = []
    for v in x:
        xs.append(v)
    for i, v in enumerate(xs):
        xs[i] = math.sin(v) * v
    return sum(xs)


@lists
def swapped_items(x):
    xs = []
    for v in x:
        xs.append(v)
    for i in range(len(xs) // 2):
        j = len(xs) - 1 - i
        xs[i], xs[j] = xs[j], xs[i]
    total = 0.0
    for i in range(len(xs)):
        total += (i + 1) * xs[i] ** 2
    return total


@lists
def sorted_by_bubbles(x):
    xs = []
    for v in x:
        xs.append(v)
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return xs[0] + 2 * xs[1] * xs[2] + 3 * xs[-1]


@lists
def sorted_by_insertion(x):
    xs = []
    for v in x:
        xs.append(v)
        k = len(xs) - 1
        while k > 0 and xs[k - 1] > xs[k]:
            xs[k - 1], xs[k] = xs[k], xs[k - 1]
            k -= 1
    return xs[0] + 2 * xs[4] * xs[5] + 3 * xs[-1]


@lists
def assigned_in_a_branch(x):
    xs = []
    for v in x:
        xs.append(v)
        if v > 0.5:
            xs[-1] = v * v
        elif len(xs) > 2:
            xs[-2] += v
    return sum(xs)


@lists
def appended_in_a_branch(x):
    xs = [1.0]
    for v in x:
        if v > 0:
            xs.append(v)
        else:
            xs[-1] += v * v
    return np.prod(np.array(xs)) + len(xs) * x[0]


@lists
def appended_in_a_while_loop(x):
    xs, k, total = [], 0, 0.0
    while total < 2.0 and k < len(x):
        xs.append(x[k] ** 2)
        xs[k // 2] += 0.1
        total += xs[-1]
        k += 1
    return sum(xs) + total


@lists
def appended_in_nested_loops(x):
    xs = []
    for i in range(len(x)):
        for j in range(i):
            xs.append(x[i] * x[j])
            xs[-1 - j] += 0.5
    return np.mean(np.array(xs)) + xs[7]


@lists
def stack_of_products(x):
    stack = []
    for v in x:
        stack.append(v)
        while len(stack) > 1 and stack[-1] < stack[-2]:
            top = stack.pop()
            stack[-1] = stack[-1] * top
    return sum(stack) + stack[0]


@lists
def stack_that_is_read_deep(x):
    stack = []
    for v in x:
        stack.append(v)
        if len(stack) > 3:
            a = stack.pop()
            b = stack.pop()
            stack.append(a * b + stack[0])
    return stack[0] * stack[-1] + stack[1]


@lists
def stack_that_ends_empty(x):
    stack, total = [], 0.0
    for v in x:
        stack.append(v * v)
    while stack:
        total = total * 0.5 + stack.pop()
    return total + len(stack)


@lists
def stack_of_a_tree(x):
    stack, total = [0], 0.0
    while stack:
        k = stack.pop()
        total += x[k] * math.sin(k + 1)
        if 2 * k + 2 < len(x):
            stack.append(2 * k + 1)
            stack.append(2 * k + 2)
    return total


@lists
def brackets(x):
    stack = [1.0]
    for v in x:
        if v < 0 and len(stack) > 1:
            done = stack.pop()
            stack[-1] += done * v
        else:
            stack.append(v)
    return sum(stack)


@lists
def falling_stack_of_indices(x):
    stack, total = [], 0.0
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            k = stack.pop()
            total += (i - k) * x[k]
        stack.append(i)
    return total


@lists
def hull(x):
    stack = []
    for i in range(len(x)):
        p = (float(i), x[i])
        while len(stack) >= 2:
            a, b = stack[-2], stack[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            stack.pop()
        stack.append(p)
    total = 0.0
    for k in range(len(stack) - 1):
        total += stack[k][1] * stack[k + 1][0] - stack[k][0] * stack[k + 1][1]
    return total


@lists
def first_taken_off(x):
    queue, total = [], 0.0
    for v in x:
        queue.append(v)
        if len(queue) > 3:
            total += queue.pop(0) * v
    return total + queue[0]


@lists
def item_deleted(x):
    xs = []
    for i in range(len(x)):
        xs.append(x[i] * x[i])
        if len(xs) > 4:
            del xs[1]
    return sum(xs) + xs[1] * xs[0]


@lists
def item_inserted(x):
    xs = []
    for v in x:
        xs.insert(0, v)
    return xs[0] + 2 * xs[1] + xs[-1] ** 2


@lists
def item_popped_from_inside(x):
    xs, total = [], 0.0
    for i in range(len(x)):
        xs.append(x[i])
        if i % 4 == 3:
            total += xs.pop(i // 4) * 2
    return total + sum(xs) * xs[0]


@lists
def cleared(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
        if len(xs) == 5:
            total += xs[0] * xs[4]
            xs.clear()
    return total + sum(xs)


@lists
def emptied_by_a_new_list(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
        if len(xs) == 5:
            total += sum(xs)
            xs = []
    return total + len(xs)


@lists
def turned_round(x):
    xs = []
    for v in x:
        xs.append(v)
    xs.reverse()
    return xs[0] + 2 * xs[1] + xs[-1] * xs[2]


@lists
def read_in_reverse(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v * v)
    for v in reversed(xs):
        total = total * 0.5 + v
    return total


@lists
def read_backwards_by_a_slice(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v * v)
    for v in xs[::-1]:
        total = total * 0.5 + v
    return total


@lists
def the_rest_by_a_slice(x):
    xs = []
    for v in x:
        xs.append(v * v)
    return sum(xs[1:]) + 2 * sum(xs[:-1]) + sum(xs[2:5]) + len(xs[1:]) * x[0]


@lists
def every_second_by_a_slice(x):
    xs = []
    for v in x:
        xs.append(v * v)
    return sum(xs[::2]) * sum(xs[1::2])


@lists
def last_ones_by_a_slice(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
        total += sum(xs[-3:]) ** 2
    return total


@lists
def neighbours_by_zip(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v * v)
    for a, b in zip(xs, xs[1:]):
        total += (b - a) ** 2
    return total


@lists
def sum_largest_and_smallest(x):
    xs = []
    for v in x:
        xs.append(v * v)
    return sum(xs) + 2 * max(xs) - 3 * min(xs)


@lists
def largest_in_each_iteration(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
        total += max(xs) * v
    return total


@lists
def part_and_list_with_the_same_rows(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v * v]))
    part = rows[1:]
    rows.append(rows[0] * 2.0)
    return sum(row[1] for row in part) + rows[-1][0]


@lists
def two_joined(x):
    xs, ys = [], []
    for v in x:
        xs.append(v)
        ys.append(v * v)
    zs = xs + ys
    return zs[0] + zs[-1] * zs[12] + sum(zs)


@lists
def joined_and_assigned(x):
    xs = [2.0]
    for v in x:
        xs.append(v)
    zs = xs + [1.0]
    zs[0] = x[0] * 3
    zs[-1] += x[1]
    return sum(zs) + xs[0] + xs[-1]


@lists
def copied_and_assigned(x):
    xs = []
    for v in x:
        xs.append(v)
    ys, zs = list(xs), xs.copy()
    ys[0] += 1.0
    zs[1] *= x[2]
    xs[2] = 0.0
    return sum(xs) + 2 * sum(ys) + 3 * sum(zs)


@lists
def under_two_names(x):
    xs = []
    ys = xs
    for v in x:
        xs.append(v)
        ys[-1] *= 2.0
    ys[0] = x[1] ** 2
    return sum(xs) + xs[0]


@lists
def compared_with_an_empty_list(x):
    xs, total = [], 0.0
    for v in x:
        if xs == []:
            total += v
        xs.append(v)
        if len(xs) > 3:
            xs.pop()
    return total + sum(xs)


@lists
def asked_whether_it_is_empty(x):
    xs, total = [], 0.0
    for v in x:
        if xs:
            total += xs[-1] * v
        if not xs or v > xs[-1]:
            xs.append(v)
        else:
            xs[-1] = v
    return total + sum(xs)


@lists
def length_as_a_bound(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
        for k in range(len(xs)):
            total += xs[k] * v
        xs[len(xs) - 1] = total * 0.1
    return total


@lists
def extended(x):
    xs = []
    for v in x:
        xs.extend([v, v * v])
        xs[-2] += 1.0
    xs += [x[0], 2.0]
    xs[-1] *= x[1]
    return sum(xs) + xs[3]


@lists
def made_by_a_comprehension(x):
    xs = []
    for v in x:
        xs.append(v)
    ys = [v * v for v in xs]
    zs = [v for v in ys if v > 0.3]
    ys[0] = 5.0 * x[0]
    zs[-1] = ys[1]
    return sum(ys) + sum(zs)


@lists
def two_in_step(x):
    xs, ys = [0.0], [1.0]
    for v in x:
        xs.append(xs[-1] + v)
        ys.append(ys[-1] * 0.5 + xs[-1])
        xs[-2], ys[-2] = ys[-2], xs[-2]
    return sum(a * b for a, b in zip(xs, ys))


@lists
def window_of_a_deque(x):
    window, total = deque(maxlen=3), 0.0
    for v in x:
        window.append(v)
        total += sum(window) / len(window) * v
    return total


@lists
def full_window_of_a_deque(x):
    window, total = deque([0.0] * 3, maxlen=3), 0.0
    for v in x:
        window.append(v)
        window[0] += 0.5
        total += window[0] * window[-1]
    return total


@lists
def queue_of_a_deque(x):
    queue, total = deque(), 0.0
    for v in x:
        queue.append(v)
        if len(queue) > 2:
            total += queue.popleft() * v
    return total


@lists
def dict_whose_values_change(x):
    sums = {"up": 0.0, "down": 1.0}
    history = []
    for v in x:
        sums["up" if len(history) == 0 else "down"] += v * v
        history.append(sums["up"])
        history[-1] += sums["down"]
    return sum(history)


def _noted(history, v):
    history.append(v * v)
    history[-1] += 1.0
    return history[-1]


@lists
def appended_in_a_helper(x):
    history, total = [], 0.0
    for v in x:
        total += _noted(history, v)
    return total * history[0]


class _Log:
    def __init__(self):
        self.history = []

    def note(self, v):
        """Add an item, and change the one before."""
        self.history.append(v)
        if len(self.history) > 1:
            self.history[-2] *= 0.5

    def total(self):
        """Of all items."""
        return sum(self.history)


@lists
def appended_in_a_method(x):
    log = _Log()
    for v in x:
        log.note(v * v)
    return log.total() + log.history[0]


@lists
def appended_in_a_closure(x):
    xs = []

    def note(v):
        xs.append(v)
        xs[0] += 0.1 * v

    for v in x:
        note(v * v)
    return sum(xs) * xs[0]


@lists
def rows_of_which_one_is_replaced(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v * v]))
        rows[-1] = rows[-1] * 2.0
        rows[len(rows) // 2] = rows[0] + rows[-1]
    return np.sum(np.array(rows) ** 2)


@lists
def rows_with_an_item_assigned(x):
    rows = []
    for v in x:
        rows.append(np.zeros(3))
        rows[-1][1] = v
        rows[len(rows) // 2][2] += v * v
    return np.sum(np.array(rows) ** 2)


@lists
def rows_added_to_in_place(x):
    rows = []
    for v in x:
        rows.append(np.ones(2))
        rows[-1] += v
        rows[0] *= 0.9
    return np.sum(np.array(rows) ** 2)


@lists
def table_of_rows(x):
    table = []
    for i in range(len(x)):
        row = np.zeros(4)
        row[0] = x[i]
        table.append(row)
    for i in range(1, len(table)):
        for j in range(1, 4):
            table[i][j] = table[i - 1][j - 1] * 0.5 + table[i][j - 1] * x[j]
    return table[-1][3] + table[5][2]


@lists
def rows_of_other_lengths(x):
    rows = []
    for i in range(len(x)):
        rows.append(x[: i + 1] * 2.0)
        rows[i // 2] = rows[i // 2] * x[i]
    total = 0.0
    for row in rows:
        total += row.sum()
    return total


@lists
def row_under_two_names(x):
    rows = []
    for v in x:
        row = np.zeros(2)
        rows.append(row)
        row[0] = v
    return rows[0][0] + rows[3][0]


@lists
def one_row_in_many_places(x):
    row, rows = np.zeros(2), []
    for v in x:
        rows.append(row)
        rows[-1][0] += v
    return rows[0][0] + rows[3][0]


@lists
def row_taken_out_and_changed(x):
    rows = []
    for v in x:
        rows.append(np.zeros(2))
        row = rows[-1]
        row[1] = v * v
    return rows[0][1] + rows[3][1]


@lists
def pairs_of_which_one_is_replaced(x):
    pairs = []
    for i in range(len(x)):
        pairs.append((i, x[i]))
        k, v = pairs[i // 2]
        pairs[i // 2] = (k + 1, v * x[i])
    return sum(k * v for k, v in pairs)


@lists
def integers_of_which_one_is_a_float(x):
    xs = []
    for i in range(len(x)):
        xs.append(i)
        xs[-1] = x[i] * i
    return sum(xs)


@lists
def numbers_that_begin_as_integers(x):
    xs = [0]
    for v in x:
        xs.append(0)
        xs[-1] += v
    return sum(xs)


@lists
def memory_of_a_recurrence(x):
    memory = [1.0, 1.0]
    for i in range(2, len(x)):
        memory.append(0.0)
        for k in range(i):
            memory[i] += memory[k] * x[i - 1 - k]
    return memory[-1]


@lists
def heap(x):
    tree = []
    for v in x:
        tree.append(v)
        k = len(tree) - 1
        while k > 0 and tree[(k - 1) // 2] > tree[k]:
            p = (k - 1) // 2
            tree[p], tree[k] = tree[k], tree[p]
            k = p
    return tree[0] + 2 * tree[1] * tree[2] + tree[-1]


@lists
def given_back_as_an_array(x):
    xs = []
    for v in x:
        xs.append(v)
        xs[len(xs) // 3] += v
    return (np.array(xs) * np.arange(len(xs))).sum() + np.stack(xs).max() + np.mean(xs)


@lists
def contained(x):
    seen, total = [], 0.0
    for v in x:
        k = int(v * 3.7)
        if k in seen:
            total += v
        else:
            seen.append(k)
    return total + len(seen) * x[1]


@lists
def multiplied_and_filled(x):
    xs = [0.0] * 3
    for i in range(len(x)):
        xs[i % 3] += x[i]
        if i > 6:
            xs.append(x[i])
    return sum(v * v for v in xs)


@lists
def joined_in_place_in_a_branch(x):
    xs = []
    for v in x:
        xs += [v]
        if v > 0.4:
            xs += [v * v, 1.0]
    if x[0] < x[1]:
        xs += [x[3]]
    else:
        xs.pop()
    return sum(xs) * xs[-1]


@lists
def rows_joined(x):
    rows = []
    for i in range(len(x)):
        rows.append(x[: i % 3 + 1])
        rows[i // 2] = rows[i // 2] * 2.0
    return np.concatenate(rows).sum() + rows[0][0]


@lists
def row_changed_in_an_inner_loop(x):
    rows = []
    for v in x:
        row = np.zeros(3)
        rows.append(row)
        for j in range(len(x) // 4):
            row[j] = v * (j + 1)
        rows[0][1] += v
    return np.sum(np.array(rows) ** 2)


@lists
def row_popped_and_changed(x):
    rows, total = [], 0.0
    for v in x:
        rows.append(np.array([v, 1.0]))
        if len(rows) > 2:
            row = rows.pop(0)
            row[1] *= v
            total += row.sum()
        rows[-1][0] *= 2.0
    return total + rows[0][0] * rows[1][1]


@lists
def changed_in_reversed_order(x):
    xs = []
    for v in x:
        xs.append(v)
    for i in range(len(xs) - 2, -1, -1):
        xs[i] += 0.5 * xs[i + 1]
    del xs[0], xs[-1]
    return xs[0] * xs[-1]


@lists
def items_under_two_lists(x):
    xs, ys = [], []
    for v in x:
        row = np.array([v, v])
        xs.append(row)
        ys.append(row)
    xs[2][0] = 4.0
    return ys[2][0] + x[0]


@lists
def two_names_of_one_row(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v]))
    one, other = rows[1], rows[1]
    one[0] = 7.0 * x[0]
    return other[0]


@lists
def copy_of_a_list_of_rows(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v]))
    others = list(rows)
    others[0][0] = 5.0
    return rows[0][0] + others[0][0] * x[1]


@lists
def row_of_before_the_loop(x):
    row = np.zeros(2)
    rows = [row]
    for v in x:
        rows.append(np.array([v, v]))
    row[0] = 5.0 * x[0]
    return rows[0][0] + rows[1][1]


@lists
def row_put_at_two_places(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v]))
        rows[len(rows) // 2] = rows[0]
        rows[0][1] += v
    return rows[1][1] + rows[-1][0]


@lists
def integers_and_floats(x):
    xs = []
    for v in x:
        xs.append(1)
        xs.append(v * 0.5)
    total = 0.0
    for v in xs:
        total = total + v
    return total


@lists
def appended_to_while_gone_along(x):
    xs, total = [], 0.0
    for v in x:
        xs.append(v)
    for i, v in enumerate(xs):
        total = total * 0.9 + v * i
        if len(xs) < 20:
            xs.append(v * 0.5)
    for v, w in zip(xs, x):
        total += v * w
    for v in xs:
        if len(xs) > 15:
            total += xs.pop() * v
    return total


@lists
def rows_changed_in_branches_and_by_views(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v, 1.0]))
        row = rows[-1]
        if v > 0.5:
            row[0] = 3.0 * v
        else:
            row[1:] *= 2.0
    return sum(row[0] * row[1] * row[2] for row in rows)


@lists
def row_read_before_the_list_is_turned_round(x):
    rows = []
    for v in x:
        rows.append(np.array([v, v]))
    row = rows[0]
    rows.reverse()
    row[0] = 5.0
    return rows[-1][0] * x[0]


@lists
def lists_that_feed_each_other(x):
    left, right = [1.0], [x[0]]
    for v in x:
        left.append(right[-1] * v + left[-1])
        right.append(left[-2] * left[-1] + 0.5)
    return left[-1] * right[-1] + sum(left)


@lists
def lags_of_several_lengths(x):
    xs = [x[0], x[1], x[2]]
    for i in range(8):
        xs.append(xs[-3] * xs[-(i % 3) - 1] + xs[i] * x[i])
    return xs[-1] + xs[-i]


@lists
def read_while_a_branch_appends(x):
    xs, total = [x[0]], 0.0
    for v in x:
        if v > 0:
            xs.append(xs[-1] * v)
        total += xs[len(xs) // 2] ** 2
    return total


@lists
def read_whole_in_each_iteration(x):
    xs = [x[0]]
    for i in range(5):
        total = 0.0
        for v in xs:
            total += v * x[i]
        xs.append(total)
    return xs[-1] * xs[3]


@lists
def a_list_in_each_iteration(x):
    total = 0.0
    for i in range(5):
        xs = [x[i]]
        for j in range(i + 1):
            xs.append(xs[-1] * x[j] + xs[0])
        total += xs[-1] * xs[len(xs) // 2]
    return total


@lists
def an_array_of_it_twice(x):
    xs = []
    for v in x:
        xs.append(v * x[0])
    return np.array(xs).sum() * np.array(xs).max() + np.asarray(xs)[::2].sum() + xs[3]


@lists
def complex_numbers(x):
    zs = [1.0 + 0.5j]
    for v in x:
        zs.append(zs[-1] * (v + 0.5j))
    return abs(zs[-1]) + zs[3].imag


@lists
def left_early(x):
    xs = [x[0]]
    for v in x:
        if v < -0.8:
            break
        if v < 0:
            continue
        xs.append(xs[-1] + v**2)
    return xs[-1] * xs[0]


def _history(x, limit):
    history = []
    for v in x:
        history.append(v * v)
        if sum(history) > limit:
            return history
    return history


@lists
def returned_from_its_loop(x):
    return sum(v * np.sin(v) for v in _history(x, 1.5)) + len(_history(x, 1.5))


def _steps_and_sums(x, limit):
    if len(x) == 0:
        return None
    steps, sums = [], [0.0]
    for i in range(len(x)):
        steps.append(x[i])
        for j in range(i):
            sums.append(sums[-1] + x[j] * x[i])
            if sums[-1] < limit:
                return steps, i, sums
        if i == len(x) - 1:
            return steps, i, sums
    raise ValueError("no numbers")


@lists
def returned_in_a_tuple_from_nested_loops(x):
    steps, last, sums = _steps_and_sums(x, -0.8)
    return np.sum(np.array(steps) ** 2) * last + sums[-2] * sums[-1]


@lists
def returned_with_what_an_endless_loop_finds(x):
    def root(a):
        guesses, y = [], 1.0 + a
        while True:
            guesses += [y]
            y = 0.5 * (y + (1.0 + a) / y)
            if abs(y * y - 1.0 - a) < 1e-9:
                return y, guesses

    y, guesses = root(x[0] * x[0])
    return y * guesses[1] + sum(guesses)


@lists
def list_of_places(x):
    places = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            places.append(i)
    y = x * 2.0
    y[places] += x[0]
    y[places[1:]] *= x[1]
    return np.sum(y * np.arange(12)) + np.mean(x[places]) * len(places)


@lists
def lists_side_by_side(x):
    times, values = [], []
    for i in range(len(x)):
        if x[i] > 0.0:
            times.append(i * x[0])
            values.append(np.sin(x[i]))
    both = np.array([times, values])
    table = np.column_stack((times, values, values))
    rows = np.vstack([values, times])
    return np.sum(both[0] * both[1]) + table[2, 1] * table[1, 0] + rows[0].sum()


@lists
def items_given_one_by_one(x):
    def spread(first, second, *others):
        return first * second - others[0] * sum(others)

    items, pairs = [x[11]], []
    for i in range(10):
        items.append(x[i] ** 2)
    k = 9
    while k > 0:
        pairs.append((x[k], x[k] * x[0]))
        k -= 1
    left, right = zip(*pairs)
    a, b, *_, c = items
    return spread(*items) + a * b * c + left[2] * right[8] + len((1.0, *items))


@lists
def class_of_a_list(x):
    items = []
    for v in x:
        items.append(v * v)
    is_list = (type(items) is list) + 2.0 * (items.__class__ in (list, tuple))
    has_item = hasattr(items, "item") + getattr(items, "item", 4.0)
    return items[3] * is_list + x[0] * has_item + {list: 8.0}.get(type(items), x[1])


# Lists that each iteration makes anew.


@lists
def smoothed_by_a_comprehension(x):
    items = [0] * len(x)
    for v in x:
        items = [0.5 * items[i] + v * items[i - 1] + x[i] for i in range(len(x))]
    return sum(items) + items[-1] * items[0]


@lists
def two_lists_that_step(x):
    before, now = list(x), [v * v for v in x]
    for w in x:
        after = []
        for i in range(len(now)):
            after.append(1.9 * now[i] - before[i] + w * now[i - 1])
        before = now
        now = after
    return sum(before) + 2.0 * now[3]


@lists
def two_lists_that_change_places(x):
    one, other = [x[0] * v for v in x], [np.sin(v) for v in x]
    for v in x[:5]:
        one, other = [v * a for a in other], [a + x[2] for a in one]
    return one[1] * other[2] + sum(one)


@lists
def items_left_out_in_each_iteration(x):
    items = list(x)
    for _ in range(int(x[7] * 5)):
        left = []
        for v in items:
            if v > 0.1:
                left.append(v * 0.9)
        items = left
    return sum(items) + len(items)


@lists
def one_item_more_in_each_iteration(x):
    items = [x[0]]
    for v in x:
        items = [a * v for a in items] + [1.0]
        items = [items[i] + 0.1 * items[i - 1] for i in range(len(items))]
    return sum(items) * items[2]


@lists
def another_list_in_a_branch(x):
    items = list(x)
    for v in x:
        if v > 0.0:
            items = [v * w for w in items]
        else:
            items = [0.5 * w + v for w in x[:7]]
    return sum(items) + items[1]


@lists
def a_list_that_some_iterations_keep(x):
    items, count = [0] * 12, 0
    for v in x:
        shifted = [a + v * x[0] for a in items]
        if max(shifted) < 0.7:
            items = shifted
            count += 1
        elif v > 1.2:
            items = [0.5 * a for a in items]
    return sum(items) + items[2] * x[1] + count


@lists
def last_of_the_lists(x):
    for k in range(3, len(x)):
        items = [v * x[k] for v in x[:k]]
    return sum(items) + len(items) * items[-1]


@lists
def copied_and_changed_and_kept(x):
    items, kept = [1.0] * 12, []
    for v in x:
        items = list(items)
        items[0] = v
        items = [a + v * items[0] for a in items]
        kept.append(list(items))
    return kept[2][1] * kept[-1][0] + items[5]


@lists
def until_the_largest_is_small(x):
    items, count = [2.0 * v for v in x], 0
    while max(items) > 1.0 and count < 40:
        items = sorted([0.7 * a + 0.1 * x[0] for a in items])
        count += 1
    return items[-1] * items[-2] + count
