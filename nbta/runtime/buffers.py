"""Buffers: allocation, growth that moves nothing, guards, giving pages back.

Page faults are the price of growth: filling fresh memory from Numba's allocator gives about
3 GB/s where the same memory in huge pages gives 13. A buffer of `map_threshold` bytes or more is
therefore mapped with room to grow (address space, which costs nothing until it is touched) and
huge pages are asked for. A buffer that must move is copied and *kept* by its successor: a view
handed out earlier stays valid, even in compiled code whose reference counts were optimised away.
With room for a gigabyte, and then for 32 times what is there, what is kept this way is little.
Whatever grows in steps must therefore grow by a factor, gradient arrays that are read past their
end too: a buffer for each slot, all of them kept, is quadratic memory.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.memory import kernel
from nbta.runtime.pool import LIBRARY, PAGES, RESERVE, empty_pool, put_in_pool, take_from_pool
from nbta.runtime.settings import add_to_setting, change_setting, setting
from nbta.tuning import FIRST_RESERVE, LONGEST_WITH_RECORD, POOLED, SMALL_GROWTH

# A buffer's owner holds a record of int64. OWNERS tells how many of its first words are owners that
# it gives back: a table with room to grow into is a gigabyte, of which few pages were touched.
BASE, TOTAL, KIND, FIRST, COUNT, OLDER, OWNERS = range(7)
#: Address of the state bytes of slots, where these lie after the elements.
STATES = 7
#: Of mapped memory: bytes from its base on that were touched before this buffer had it, and that
#: may be other than 0; whether it is room to grow into; whether the pool may have it.
TOUCHED, NONZERO, GROWING, REUSABLE = range(8, 12)
RECORD_FIELDS = 12  # a multiple of 16 bytes, as what comes after them is aligned
#: Kinds: memory of the C library, mapped pages, bytes after the record.
FROM_LIBRARY, MAPPED, WITH_RECORD = range(3)

HUGE_PAGE = 2 << 20
PAGE = 4096
GUARD_BYTE = 0xA5

_PROT_READ_WRITE = 3
_MAP_PRIVATE_ANONYMOUS = 0x22
_MAP_NORESERVE = 0x4000
_MADV_DONTNEED = 4
_MADV_HUGEPAGE = 14
#: Bytes of elements that are painted, too, in memory that is not filled with zeros.
MOST_PAINTED = 1 << 20
#: What fits an address; anything larger is refused before it is tried.
LARGEST = 1 << 47


@kernel
def round_up(value, unit):
    """The next multiple of ``unit``, a power of two."""
    return (value + unit - 1) & -unit


@kernel
def may_allocate():
    """Count one allocation against the limit that tests inject."""
    left = setting(settings.ALLOCATIONS_LEFT)
    if left > 0:
        change_setting(settings.ALLOCATIONS_LEFT, left - 1)
    return left != 0


@kernel
def map_pages(nbytes, growing):
    """Zeroed pages, huge where the system can, or 0. Growing room is not charged to memory.

    Huge pages need addresses that are a multiple of their size: what is mapped too much on either
    side goes back.
    """
    flags = np.int32(_MAP_PRIVATE_ANONYMOUS)
    if growing:
        flags |= np.int32(_MAP_NORESERVE)
    spare = HUGE_PAGE if nbytes >= HUGE_PAGE else 0
    protection = np.int32(_PROT_READ_WRITE)
    mapped = mem.libc_mmap(0, nbytes + spare, protection, flags, np.int32(-1), 0)
    if mapped == -1:
        return 0
    address = mapped
    if spare:
        address = round_up(mapped, HUGE_PAGE)
        trim(mapped, address)
        trim(address + nbytes, mapped + nbytes + spare)
    mem.libc_madvise(address, nbytes, np.int32(_MADV_HUGEPAGE))
    return address


@kernel
def trim(first, last):
    """Unmap a range of pages, which may be empty."""
    if first < last:
        mem.libc_munmap(first, last - first)


@kernel
def unmap_or_free(base, total, kind):
    """Give memory back to where it came from."""
    if kind == MAPPED:
        mem.libc_munmap(base, total)
    elif kind == FROM_LIBRARY:
        mem.libc_free(base)


@kernel
def finalize_buffer(record):
    """Give a buffer's memory back, with the owners it holds and the buffer it outgrew."""
    fields = mem.array_at(record, RECORD_FIELDS, np.int64)
    owners = mem.array_at(fields[FIRST], fields[OWNERS], np.int64)
    for i in range(len(owners)):
        mem.release(owners[i])
    mem.release(fields[OLDER])
    if not reuse(fields):
        unmap_or_free(fields[BASE], fields[TOTAL], fields[KIND])
    add_to_setting(settings.LIVE_BYTES, -fields[TOTAL])
    return 0


@kernel
def reuse(fields):
    """Let the pool have a buffer's memory, if it takes it."""
    base, total, nonzero = fields[BASE], fields[TOTAL], fields[NONZERO]
    if fields[KIND] == FROM_LIBRARY:
        return total >= POOLED and put_in_pool(base, total, total, total, LIBRARY)
    if fields[KIND] != MAPPED or not fields[REUSABLE]:
        return False
    unit = HUGE_PAGE if total >= HUGE_PAGE else PAGE
    touched = min(round_up(max(fields[TOUCHED], nonzero), unit), total)
    return put_in_pool(base, total, touched, nonzero, RESERVE if fields[GROWING] else PAGES)


@kernel
def note_used(owner, nbytes):
    """Note how many bytes of a mapped buffer, from its first on, its last user may have changed.

    Of memory with state bytes after its elements, or with guards, all counts as changed.
    """
    fields = record_at(owner)
    if fields[KIND] == MAPPED and not fields[OWNERS]:
        partly = fields[FIRST] == fields[BASE] and fields[STATES] == 0
        used = min(nbytes, fields[TOTAL]) if partly else fields[TOTAL]
        fields[NONZERO] = max(fields[NONZERO], used)
        fields[REUSABLE] = 1


@kernel
def no_bytes():
    """The empty array that stands for "no buffer": address 0, no owner."""
    return mem.array_at(0, 0, np.uint8)


@kernel
def ask_system(total, growing):
    """Memory for a buffer, and its kind; address 0 for none."""
    if total < setting(settings.MAP_THRESHOLD):
        return mem.libc_malloc(total), FROM_LIBRARY
    return map_pages(total, growing), MAPPED


@kernel
def find_memory(total, growing):
    """Base, length and kind of memory, and what is touched and nonzero of it; base 0 for none."""
    if total >= setting(settings.MAP_THRESHOLD):
        total = round_up(total, PAGE)
        kind, source = MAPPED, RESERVE if growing else PAGES
    else:
        kind, source = FROM_LIBRARY, LIBRARY
    if kind == MAPPED or total >= POOLED:
        base, length, touched, nonzero = take_from_pool(total, source)
        if base:
            return base, length, kind, touched, nonzero
    base, kind = ask_system(total, growing)
    if base == 0 and empty_pool():
        base, kind = ask_system(total, growing)
    used = total if kind == FROM_LIBRARY else 0
    return base, total, kind, used, used


@kernel
def new_memory(count, state_count, growing, zeroed):
    """Owner of ``count`` bytes and of state bytes after them; 0 when there is no memory.

    State bytes are zeros, and so are all others where these are to be ``zeroed``.
    """
    if count < 0 or count > LARGEST or state_count > LARGEST or not may_allocate():
        return 0
    guard = setting(settings.GUARD)
    total = count + 2 * guard
    if state_count:
        total += state_count + 2 * guard
    if total <= LONGEST_WITH_RECORD:
        owner = mem.allocate_finalized(8 * RECORD_FIELDS + total, finalize_buffer)
        if owner:
            base = mem.owner_payload(owner) + 8 * RECORD_FIELDS
            _own(owner, base, total, WITH_RECORD, count, state_count)
            _fill(owner, total, total, growing, zeroed, state_count)
        return owner
    base, total, kind, touched, nonzero = find_memory(total, growing)
    if base == 0:
        return 0
    owner = mem.allocate_finalized(8 * RECORD_FIELDS, finalize_buffer)
    if owner == 0:
        unmap_or_free(base, total, kind)
    else:
        _own(owner, base, total, kind, count, state_count)
        _fill(owner, touched, nonzero, growing, zeroed, state_count)
    return owner


@kernel
def _fill(owner, touched, nonzero, growing, zeroed, state_count):
    """Fill a new buffer with zeros, as far as it needs them, and paint its guards."""
    fields, guarded = record_at(owner), setting(settings.GUARD) > 0
    fields[TOUCHED], fields[NONZERO], fields[GROWING] = touched, nonzero, growing
    if zeroed:
        mem.clear_bytes(fields[BASE], min(nonzero, fields[TOTAL]))
        fields[TOUCHED], fields[NONZERO] = max(touched, nonzero), 0
    elif guarded:  # whoever takes them for zeros shall not have them by chance
        paint(fields[FIRST], min(fields[COUNT], MOST_PAINTED))
    if not zeroed and nonzero:
        mem.clear_bytes(fields[STATES], state_count)
    paint_around(fields[FIRST], fields[COUNT])
    if state_count:
        paint_around(fields[STATES], state_count)


@kernel
def _own(owner, base, total, kind, count, state_count):
    """Fill in a new buffer's record."""
    guard = setting(settings.GUARD)
    fields = record_at(owner)
    fields[BASE], fields[TOTAL], fields[KIND] = base, total, kind
    fields[FIRST], fields[COUNT] = base + guard, count
    fields[OLDER], fields[OWNERS], fields[REUSABLE] = 0, 0, 0
    fields[STATES] = base + 3 * guard + count if state_count else 0
    add_to_setting(settings.LIVE_BYTES, total)


@kernel
def new_buffer(count, growing):
    """``count`` zeroed bytes that own themselves, or `no_bytes` when there is no memory."""
    owner = new_memory(count, 0, growing, True)
    if owner == 0:
        return no_bytes()
    return mem.adopt_array(owner, record_at(owner)[FIRST], count, np.uint8)


@kernel
def new_points(count):
    """Room for code points; no items when there is no memory."""
    owner = mem.allocate_owner(4 * count) if may_allocate() else 0
    if owner == 0:
        return mem.array_at(0, 0, np.int32)
    return mem.adopt_array(owner, mem.owner_payload(owner), count, np.int32)


@kernel
def copied_points(address, count):
    """A copy of code points; no points when there is no memory."""
    points = new_points(count)
    mem.copy_bytes(mem.address_of(points), address, 4 * len(points))
    return points


@kernel
def record_at(owner):
    """The record of a buffer."""
    return mem.array_at(mem.owner_payload(owner), RECORD_FIELDS, np.int64)


@kernel
def hold_owners(owner):
    """Make a buffer of owner addresses give each of them back when it goes."""
    fields = record_at(owner)
    fields[OWNERS] = fields[COUNT] // 8


@kernel
def hold_owner_at(owner, k):
    """Let a buffer give back the owner in its word k, with those before it."""
    fields = record_at(owner)
    fields[OWNERS] = max(fields[OWNERS], k + 1)


@kernel
def keep_older(owner, older):
    """Make a buffer keep another one alive, with all that this one keeps."""
    fields, last = record_at(owner), record_at(older)
    while last[OLDER]:
        last = record_at(last[OLDER])
    last[OLDER] = fields[OLDER]
    fields[OLDER] = older
    mem.retain(older)


@kernel
def hand_on(owner, older, keeps):
    """Let a larger copy of a buffer have the owners that it holds; or keep it alive."""
    fields, outgrown = record_at(owner), record_at(older)
    if outgrown[OWNERS]:
        fields[OWNERS], outgrown[OWNERS] = outgrown[OWNERS], 0
        fields[OLDER], outgrown[OLDER] = outgrown[OLDER], 0
    elif keeps:
        mem.retain(older)
        fields[OLDER] = older


@kernel
def grown_capacity(capacity, needed, unit):
    """Slots to make room for when an array grows step by step: first and second choice."""
    slots = max(SMALL_GROWTH * capacity, needed, setting(settings.FIRST_CAPACITY))
    if slots * unit < setting(settings.MAP_THRESHOLD):
        return slots, needed
    return max(32 * needed, FIRST_RESERVE // unit), 2 * needed


@kernel
def enlarged(buffer, used, count):
    """A larger copy of a buffer, which takes over its owners; `no_bytes` without memory."""
    larger = new_buffer(count, False)
    if len(larger) == 0:
        return larger
    if used:
        mem.copy_bytes(mem.address_of(larger), mem.address_of(buffer), used)
    if mem.owner_of(buffer):
        hand_on(mem.owner_of(larger), mem.owner_of(buffer), False)
    return larger


@kernel
def give_back(first, last):
    """Return the whole pages inside a range of addresses of a mapped buffer to the system."""
    start, stop = round_up(first, PAGE), last & -PAGE
    if start < stop:
        mem.libc_madvise(start, stop - start, np.int32(_MADV_DONTNEED))


@kernel
def paint(address, count):
    """Fill guard bytes."""
    for i in range(count):
        mem.store_byte(address + i, GUARD_BYTE)


@kernel
def paint_around(address, count):
    """Fill the guard bytes on both sides of so many bytes."""
    guard = setting(settings.GUARD)
    paint(address - guard, guard)
    paint(address + count, guard)


@kernel
def painted(address, count):
    """Whether guard bytes are as they were painted."""
    changed = 0
    for i in range(count):
        changed += mem.load_byte(address + i) != GUARD_BYTE
    return changed == 0


@kernel
def painted_around(address, count):
    """Whether the guard bytes on both sides of so many bytes are as they were painted."""
    guard = setting(settings.GUARD)
    return address == 0 or (painted(address - guard, guard) and painted(address + count, guard))
