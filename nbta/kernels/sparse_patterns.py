"""Patterns of sparse matrices: which items a union has, and colours of rows.

A pattern is in compressed rows: `first` says where each row begins in `items`.
"""

import numpy as np

from nbta.runtime.compiled import cacheable


def _reach(starts, count, first, parts):
    stack, seen = np.empty(64, np.int64), np.full(count + len(first), -1, np.int64)
    found, size = np.empty(64, np.int64), 0
    ends = np.zeros(len(starts) + 1, np.int64)
    for row in range(len(starts)):
        stack[0], depth = starts[row], 1
        seen[0] = row  # the empty set
        while depth:
            depth -= 1
            node = stack[depth]
            if seen[node] == row:
                continue
            seen[node] = row
            if node <= count:
                if size == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[size] = node - 1
                size += 1
                continue
            place = node - count - 1
            more = first[place + 1] - first[place]
            while depth + more > len(stack):
                stack = np.concatenate((stack, np.empty_like(stack)))
            for k in range(first[place], first[place + 1]):
                if seen[parts[k]] != row:
                    stack[depth] = parts[k]
                    depth += 1
        found[ends[row] : size].sort()
        ends[row + 1] = size
    return ends, found[:size].copy()


def _colours(order, first, items, first_back, items_back):
    colours = np.full(len(order), -1, np.int64)
    taken = np.full(len(order) + 1, -1, np.int64)
    for row in order:
        for k in range(first[row], first[row + 1]):
            column = items[k]
            for m in range(first_back[column], first_back[column + 1]):
                other = colours[items_back[m]]
                if other >= 0:
                    taken[other] = row
        colour = 0
        while taken[colour] == row:
            colour += 1
        colours[row] = colour
    return colours


def _neighbours(first, items, first_back, items_back):
    count = len(first) - 1
    found, seen = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    for row in range(count):
        for k in range(first[row], first[row + 1]):
            column = items[k]
            for m in range(first_back[column], first_back[column + 1]):
                other = items_back[m]
                if seen[other] != row:
                    seen[other] = row
                    found[row] += 1
    return found


#: Of each start, the items that it reaches: nodes 1 to ``count`` are the items, 0 is none, and a
#: later node has the parts ``parts[first[k]:first[k + 1]]``. There may be circles.
reach = cacheable(_reach)
#: Colours for rows, given one by one: the smallest that no row has that shares a column.
colours = cacheable(_colours)
#: How many rows share a column with each row, itself among them.
neighbours = cacheable(_neighbours)
