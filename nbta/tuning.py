"""The table of tuning constants: each with its unit, who decides by it, and what set it.

A constant stands here if another value would give the same results, but other times, sizes or
notes; or if it bounds what an algorithm is used for. Constants of mathematics, of file formats and
of layouts in memory stay with their algorithms. Where a reason names no figure, none was recorded:
it says what the constant bounds.

The runtime's compiled kernels are as old as its own rows and sources (`runtime.compiled`).
"""

from typing import NamedTuple, TypeVar

Value = TypeVar("Value")


class Row(NamedTuple):
    """What is said of a constant.

    Attributes
    ----------
    value : number, tuple or range
    unit : str
        What it counts.
    module : str
        The module that decides by it, below the package.
    reason : str
        The measurement that set it, or what it bounds.
    """

    value: object
    unit: str
    module: str
    reason: str


_rows: list[Row] = []


def _row(value: Value, unit: str, module: str, reason: str) -> Value:
    _rows.append(Row(value, unit, module, reason))
    return value


# Traced functions.

TOGETHER_ITEMS = _row(
    4, "items", "frontend.list_items",
    "From so many on a loop carries a list of numbers as one tensor where it assigns an item at a "
    "place that only the run knows. A gradient of 100,000 iterations with a list of 8 took 0.94 "
    "ms when each item was a variable.",
)  # fmt: skip
LISTED_NUMBERS = _row(
    64, "items", "frontend.iteration",
    "Up to so many numbers that are the same, or count, a comprehension is a list of single "
    "numbers, which loops carry as one tensor; an array that grows is read and written by kernels. "
    "Each number is an operation to trace.",
)  # fmt: skip

RECURSION_DEPTH = _row(
    3, "calls", "frontend.recursion",
    "So many calls of a function by itself are written out where only the run ends them, and a "
    "deeper one is an error of the run. A reflection is 1 deep, and 2 with another one; each level "
    "doubles the operations of a function that calls itself twice.",
)  # fmt: skip
ITERATIONS_OF_PYTHON = _row(
    1500, "operations", "frontend.control",
    "A loop that cannot be one of the graph is traced iteration by iteration if that makes fewer "
    "operations. Each takes about 0.1 ms to trace and ten times that to compile.",
)  # fmt: skip

# Passes on programs.

FOLLOWED_ACCESSES = _row(
    16, "reads or versions", "compiler.dead_stores",
    "Stores whose item so many later accesses may read are left: each takes a proof. For a loop of "
    "400 assigned items all proofs took 13 to 16 of 32 to 37 s of a first call.",
)  # fmt: skip
CONSTANT_ITEMS = _row(
    10_000, "items", "compiler.passes",
    "Bounds the memory of folded constants: larger ones are computed again in each run.",
)  # fmt: skip
REMEMBERED_LENGTHS = _row(
    1000, "sets of lengths", "compiler.specialising",
    "Bounds the memory of a program's inferred shapes.",
)  # fmt: skip
UNLIKE_LENGTH = _row(
    2**40 + 15, "items", "compiler.specialising",
    "A length that no array has, so that none is equal to it by chance.",
)  # fmt: skip
NAMED_ITEMS = _row(
    16, "items of an axis", "compiler.specialising",
    "An axis of at most so many items may be one that a program names item by item: code is then "
    "for that length alone.",
)  # fmt: skip
OPERATION_PRICE = _row(
    4, "price", "compiler.least_saved",
    "To save eight bytes and to restore them takes as long as four operations.",
)  # fmt: skip
BYTE_PRICE = _row(
    2, "price of a byte on a tape", "compiler.least_saved",
    "Eight bytes cost 16, as four operations do.",
)  # fmt: skip
TAPE_PRICE = _row(
    8, "least price of an element of a tape", "compiler.least_saved",
    "No element is cheaper: one of a byte takes an access, too.",
)  # fmt: skip
SHIFTED_PRICE = _row(
    8, "price", "compiler.least_saved",
    "Such a value, a tape's in the next iteration, is read there: as much as the cheapest "
    "element.",
)  # fmt: skip
ONCE_PRICE = _row(
    1, "price", "compiler.least_saved",
    "A number that no iteration changes is saved once, by the loop around: the least that is not "
    "nothing.",
)  # fmt: skip
ARRAY_PRICE = _row(
    64, "times the price of a number", "compiler.least_saved",
    "Stands for the items of an array, whose number is not known where prices are compared.",
)  # fmt: skip
ENDLESS_PRICE = _row(
    1 << 40, "price", "compiler.least_saved",
    "More than all that a program could save together: such a value is not saved.",
)  # fmt: skip
WHOLE_FILL = _row(
    32, "items", "ops.core.filling",
    "Arrays whose rows have no more items that a loop stores are filled whole: going around them "
    "takes calls for each row, and a Kalman filter of 4 states took 1.8 times as long.",
)  # fmt: skip
PACKED_ROW = _row(
    16, "numbers", "compiler.array_fills",
    "Bounds the rows that lie contiguous in linearised tapes.",
)  # fmt: skip
UNTILED_ITEMS = _row(
    64, "items", "compiler.tiling_legality",
    "Bounds what is not computed along the tiled axis, and so in each tile again.",
)  # fmt: skip
TILE_ITEMS = _row(
    512, "items", "compiler.tiles",
    "Fewer do not pay for the lines around an iteration's loops over them.",
)  # fmt: skip
TILE_BYTES = _row(
    256 * 1024, "bytes", "compiler.tiles",
    "What a tile's rows and tapes are to take of a second-level cache.",
)  # fmt: skip
TILE_ALIGNMENT = _row(
    8, "items", "compiler.tiles",
    "Tiles begin where lines of the cache do: 64 bytes are 8 float64.",
)  # fmt: skip
ASSUMED_ITERATIONS = _row(
    64, "iterations", "compiler.tiles",
    "Stands for an unknown number of iterations in the bytes that a tile takes.",
)  # fmt: skip
RESIDUAL_LINES = _row(
    3, "lines", "compiler.residuals",
    "Bounds a note for people: lines of readers that it names.",
)  # fmt: skip
SHOWN_CHARACTERS = _row(
    400, "characters", "compiler.manager",
    "Bounds an error message: what it shows of an analysis.",
)  # fmt: skip

# Emitted code.

WATCHED_ITERATIONS = _row(
    1024, "iterations", "compiler.emitter",
    "A loop asks so seldom whether to look at signals: one without a way out goes faster.",
)  # fmt: skip
LARGE_BODY = _row(
    40, "operations", "compiler.emitter",
    "From here on LLVM makes no version of a loop's body by itself in which nothing asks whether "
    "indices are outside (-unswitch-threshold: 50 instructions). One that asks takes twice as "
    "long where iterations wait for each other, too (alignment by max).",
)  # fmt: skip
PARTED_ITERATIONS = _row(
    12, "iterations", "compiler.emitter",
    "From here on the first and the last iteration are apart. Of four iterations, three loops in "
    "place of one take 1.5 times as long.",
)  # fmt: skip
END_ITERATIONS = _row(
    3, "iterations", "compiler.loop_ends",
    "Bounds the iterations of an end of a loop: indices of wide stencils wrap around in so many.",
)  # fmt: skip
VERY_LARGE_BODY = _row(
    1000, "operations", "compiler.emitter",
    "From here on two versions of a body take LLVM longer than most programs run.",
)  # fmt: skip
INDEX_CHECK_OPERATIONS = _row(
    6, "operations", "compiler.emitter",
    "The instructions that look at the indices of an item, counted for LARGE_BODY.",
)  # fmt: skip
SKIPPED_ADJOINTS = _row(
    3, "adjoints", "compiler.zero_adjoints",
    "Bounds the comparisons with zero that decide whether an adjoint iteration runs.",
)  # fmt: skip
SKIPPED_TRUTHS = _row(
    4, "truth values", "compiler.zero_adjoints",
    "Bounds the combinations that are looked at, and what decides whether an adjoint iteration "
    "runs.",
)  # fmt: skip
STENCIL_WIDTH = _row(
    32, "items", "compiler.stencils",
    "Bounds the rows of scratch memory: how far apart items may be that one iteration adds to.",
)  # fmt: skip
STENCIL_STRETCH = _row(
    512, "iterations", "compiler.stencils",
    "The rows of a stretch, of 4 KB each in float64, stay in the innermost cache.",
)  # fmt: skip
STENCIL_ITERATIONS = _row(
    8, "iterations", "compiler.stencils",
    "Shorter loops add to items at once. Value and gradient of the heat equation in us, in rows "
    "and at once, on a machine that did other work, too: 13 and 8 for 6 iterations a step, 13 and "
    "15 for 8, 14 and 10 for 10, 14 and 13 to 18 for 16, 16 and 17 to 28 for 24, 23 to 30 and 39 "
    "to 42 for 64.",
)  # fmt: skip
WINDOW_REGISTERS = _row(
    6, "numbers", "compiler.stencil_windows",
    "Bounds what earlier iterations add to items that later ones finish. Value and gradient over "
    "the function, in memory and in registers, of sweeps over 1,000 items: 6.3 and 3.1 for one "
    "number, 4.7 and 3.3 for 3, 5.6 and 4.1 for 6, 3.3 and 3.1 for 10, 4.3 and 7.7 for 8 of one "
    "value, as a number that moves by as many registers takes an instruction for each.",
)  # fmt: skip
COUNTED_ITERATIONS = _row(
    2**40, "iterations", "compiler.stencils",
    "Of longer loops indices are checked one by one, as their last one may wrap around.",
)  # fmt: skip
SWEEP_AXES = _row(
    4, "axes", "compiler.short_counted_loops",
    "Bounds the sum of lengths that is the number of iterations of a loop that looks at no "
    "signals.",
)  # fmt: skip
SWEEP_EXTRA = _row(
    1024, "iterations", "compiler.short_counted_loops",
    "So many more iterations may such a loop make: as many as WATCHED_ITERATIONS.",
)  # fmt: skip
PREFETCHED_MATRIX = _row(
    8 * 2**20, "bytes", "compiler.prefetch",
    "A larger matrix is not in the caches for sure: with less, to ask takes longer.",
)  # fmt: skip
PREFETCHED_TAPE = _row(
    256 * 2**10, "bytes", "compiler.prefetch",
    "A smaller tape is in the second-level cache: to ask for it takes up to 6% longer.",
)  # fmt: skip
CACHE_LINE = _row(64, "bytes", "codegen.fusion", "What processors bring from memory at once.")
PREFETCH_STRETCH = _row(
    256, "items", "codegen.fusion",
    "Items of a loop between two looks ahead, for a row that the next iteration reads.",
)  # fmt: skip
SHORT_RUN = _row(
    8, "items", "codegen.fusion",
    "Runs of up to so many are written out: no vector instruction does several of them.",
)  # fmt: skip
SUM_BLOCK = _row(
    1024, "items", "codegen.fusion",
    "float32 is summed so far in its own precision, for vector instructions, and then in "
    "float64.",
)  # fmt: skip
SMALL_PRODUCT = _row(
    256, "multiplications", "codegen.small_products",
    "That of a matrix of 10 by 10 and a vector takes about 10 ns in loops, and 30 by a call.",
)  # fmt: skip
SLICE_BOUND = _row(
    2**62, "items", "codegen.windows",
    "Bounds of slices are cut to this: no axis is as long, and sums of two are int64.",
)  # fmt: skip
GAMMA_INTEGRAL_ORDER = _row(
    16.0, "order", "codegen.gammas",
    "From this order on integrals take less time than sums.",
)  # fmt: skip
GAMMA_INTEGRAL_STEP = _row(
    1 / 14, "step", "codegen.gammas",
    "The trapezoidal rule's, of 109 nodes from -52 to 56 steps; the tests hold its error.",
)  # fmt: skip
GAMMA_SERIES_FROM = _row(
    10.0, "argument", "codegen.gammas",
    "From here on asymptotic series are used; the functional equation leads smaller numbers there.",
)  # fmt: skip
ZETA_FROM = _row(
    -0.1, "argument", "codegen.special",
    "Where Riemann's zeta function begins here; below, it is computed of what is above.",
)  # fmt: skip
POSITIVE_GAMMAS_LEAST = _row(
    1e-290, "argument", "codegen.positive_gammas",
    "Bounds what these functions are used for: other numbers are left to SciPy.",
)  # fmt: skip
POSITIVE_GAMMAS_MOST = _row(
    1e290, "argument", "codegen.positive_gammas",
    "Bounds what these functions are used for: other numbers are left to SciPy.",
)  # fmt: skip
STIRLING_FROM = _row(
    8.0, "argument", "codegen.positive_gammas",
    "From here on it is Stirling's series, below it the functional equation.",
)  # fmt: skip
STIRLING_STEPS = _row(
    6, "steps", "codegen.positive_gammas",
    "So many steps of the functional equation bring numbers below STIRLING_FROM to the "
    "polynomial's.",
)  # fmt: skip
POLYGAMMA_FROM = _row(
    10, "argument", "codegen.positive_gammas",
    "From here on the series of derivatives need no more Bernoulli numbers than there are.",
)  # fmt: skip

# Jammed loops.

JAMMED_LANES = _row(
    4, "iterations of an outer loop", "loops.jamming",
    "The gradient of a polynomial of degree 127 at 4,096 points takes 0.73 ms, with 4 points side "
    "by side 0.30, with 8 points, whose variables do not go into 16 registers, 0.44.",
)  # fmt: skip
JAMMED_STATEMENTS = _row(
    100, "statements", "loops.jamming",
    "Bounds the code of one iteration, which is there five times: LLVM takes 0.1 s longer for "
    "the 45 statements of the gradient of a polynomial's sum of squares. That of 4,096 logistic "
    "maps has more than 64, and takes 0.84 to 1.2 ms instead of 2.6 to 3.0.",
)  # fmt: skip
JAMMED_FUNCTION = _row(
    1200, "statements", "loops.jamming",
    "Bounds the code of a function with jammed loops, which is made in parts from LARGE_FUNCTION "
    "on. The gradient of a hidden Markov model of 16 states and 300 steps has 415 statements "
    "without: with 1,200 in place of 600 it takes 0.12 ms in place of 0.15, and 1 s longer to "
    "compile.",
)  # fmt: skip

# Machine code, and what is saved of it.

EXIT_WAYS = _row(
    32, "ways", "compiler.lowering",
    "So many lead to one block by which a function is left: with all of them in one LLVM takes "
    "long.",
)  # fmt: skip
BLOCKS_LOOKED_BACK = _row(
    8, "blocks", "compiler.lowering",
    "Bounds the search, from the last block, for the one before an empty block.",
)  # fmt: skip
FUSED_STEPS = _row(
    1024, "operations", "codegen.fusion",
    "Bounds the operations of one loop over items, of which LLVM takes more than twice the time "
    "for twice as many. Value and gradient of 1,000 different statements over vectors take it 6.0 "
    "CPU seconds in place of 11.4, and calls 106 us in place of 137 for 9 items, 214 ms in place "
    "of 277 for 20,000. With 512 a gradient of 250 statements for 9 items takes 1.7 times as long "
    "as in one loop.",
)  # fmt: skip
LARGE_FUNCTION = _row(
    600, "statements", "compiler.lowering",
    "From here on a function is made in parts: LLVM takes more than twice the time for twice the "
    "blocks of a function, and in large graphs many loops are the same but for their names. Of 19 "
    "programs of 800 to 7,500 statements it takes 0.77 times as long as for the whole (median; "
    "0.02 to 1.45), and calls take 1 to 1.26 times as long. From 360 to 600 statements both take "
    "the same, and calls up to 1.06 times as long.",
)  # fmt: skip
RUN_FUNCTIONS = _row(
    4, "functions", "compiler.lowering",
    "Bounds the machine code that one outlined run becomes.",
)  # fmt: skip
SHORT_LOOPS = _row(
    range(8, 65), "iterations", "compiler.lowering",
    "Loops of so many are left as they are until LLVM has looked for vector instructions: "
    "unrolled first, they would be single items.",
)  # fmt: skip
WIDEST_VECTOR = _row(
    8, "items", "compiler.lowering",
    "64 bytes of float64. Vectors are as wide as goes into the length: a loop of 10 in fours "
    "takes twice as long as in twos.",
)  # fmt: skip
RUN_PIECES = _row(
    8, "pieces", "compiler.outlining",
    "Bounds the runs that are outlined in functions of LARGE_FUNCTION.",
)  # fmt: skip
SMALL_RUN_PIECES = _row(
    4, "pieces", "compiler.lowering",
    "Bounds them in smaller functions, where their statements have loops.",
)  # fmt: skip
PIECE_STATEMENTS = _row(
    48, "statements", "compiler.outlining",
    "Bounds the search for equal pieces: their statements.",
)  # fmt: skip
CUT_STATEMENTS = _row(
    600, "statements", "compiler.outlining",
    "Longer stretches of statements that are not alike are cut into functions of so many. Value "
    "and gradient of 8,000 random operations take LLVM 12 CPU seconds with 600 and with 1,200, 11 "
    "with 150 and 300, 15 with 2,400, and 30 uncut.",
)  # fmt: skip
FRAME_VALUES = _row(
    1 << 14, "values", "compiler.lowering",
    "A frame of so many, 128 KB, lies on the stack, and a larger one in memory of the C library.",
)  # fmt: skip
CACHED_ARRAYS = _row(
    1 << 20, "bytes", "compiler.graph_cache",
    "Bounds a file: arrays that passes made and an entry holds; those of the graph it only "
    "names.",
)  # fmt: skip
SAVED_BUFFERS = _row(
    1 << 30, "bytes", "compiler.executable",
    "Bounds the memory that a program holds between runs; above it buffers are given back.",
)  # fmt: skip
NOTED_BUFFERS = _row(
    100 << 20, "bytes", "compiler.executable",
    "Bounds a warning: up to here nobody is told of a run's buffers.",
)  # fmt: skip
LARGE_BUFFERS = _row(
    1 << 30, "bytes", "compiler.executable",
    "From NOTED_BUFFERS up to here a warning comes only for more than LARGE_BUFFERS_RATIO.",
)  # fmt: skip
LARGE_BUFFERS_RATIO = _row(
    10, "times the arguments", "compiler.executable",
    "Buffers in proportion to large arguments surprise nobody.",
)  # fmt: skip
UNWARNED_COPY = _row(
    4096, "bytes", "compiler.explain",
    "What a loop may copy in each iteration without a warning: it takes about 100 ns.",
)  # fmt: skip
CLOCK_RUNS = _row(
    10, "runs", "compiler.instrumentation",
    "So many tell how long a tick of the clock is, on a machine that does other work too.",
)  # fmt: skip
CLOCK_SHORTEST = _row(
    5_000_000, "ns", "compiler.instrumentation",
    "CLOCK_RUNS count only over so long a time together.",
)  # fmt: skip
CLOCK_LONGEST = _row(
    1_000_000_000, "ns", "compiler.instrumentation",
    "So long a time tells it, however few the runs.",
)  # fmt: skip

# Running graphs.

LONG_BODY = _row(
    128, "numbers that differ between items", "control.batching",
    "Directions of loops without carried numbers, together over one by one: 1.0 to 1.8 times with "
    "20 numbers, 0.5 to 1.1 with 80, 0.4 to 0.9 with 160.",
)  # fmt: skip
BATCH_PARTS = _row(
    64, "parts", "execution.batch",
    "Items are cut into so many at most, the same for any number of threads, so that sums are "
    "too.",
)  # fmt: skip
BATCH_PARTS_LEAST = _row(
    16, "parts", "execution.batch",
    "Large sums make parts fewer, but enough for 16 threads.",
)  # fmt: skip
BATCH_SUMS = _row(
    1 << 28, "bytes", "execution.batch",
    "The sums of all parts have no more, unless there are only BATCH_PARTS_LEAST.",
)  # fmt: skip
SAVED_SUMS = _row(
    1 << 24, "bytes", "execution.batch",
    "Bounds the memory held for the next batch's sums.",
)  # fmt: skip
BATCH_KINDS = _row(
    16, "kinds of what is shared", "execution.batch",
    "Bounds the memory of a function's batches.",
)  # fmt: skip
BATCH_ITEM_KINDS = _row(
    4096, "kinds of items", "execution.batch",
    "Bounds the memory of a function's batches.",
)  # fmt: skip
BATCH_TABLES = _row(
    2, "tables of threads", "execution.batch",
    "Bounds the memory that stays between batches.",
)  # fmt: skip
THREAD_SHARE = _row(
    1e-3, "CPU seconds", "execution.batch",
    "Work for which a thread is asked to take part. To wake one costs the caller 35 us, and the "
    "thread begins 20 us later. With two busy processes on two processors, the time of 200 "
    "batches on two threads to that on one, with any work shared: 1.12 for 0.3 ms of work, 1.04 "
    "for 0.4 ms, 0.97 for 1.2 ms, 0.75 for 14 ms.",
)  # fmt: skip
GIVE_UP_RUNS = _row(
    3, "runs", "execution.runner",
    "A compiled function may give up so often, one run after another, where the reference "
    "executor does not, before it is no longer tried.",
)  # fmt: skip
REMEMBERED_SHAPES = _row(
    4096, "combinations of shapes", "execution.runner",
    "Bounds the memory of those for which the function is known at once.",
)  # fmt: skip
CLOCK_LOOK = _row(
    64, "operations", "execution.reference",
    "Between looks at the clock: an operation one by one takes 1 us or more.",
)  # fmt: skip
WAITING_EVENTS = _row(
    2000, "events", "execution.tracer",
    "Wait in memory, to be written to the file together.",
)  # fmt: skip
TRACE_EVENTS = _row(
    200_000, "events", "execution.tracer",
    "Bounds events of bodies in a file: above it a viewer gets slow.",
)  # fmt: skip
TRACE_READINGS = _row(
    50_000, "readings", "execution.tracer",
    "Bounds readings of the clock in compiled code.",
)  # fmt: skip
TRACE_SLOTS = _row(8, "slots", "execution.tracer", "Bounds an event: slots that it lists.")

# When it pays to compile. The fit of these figures is told in `execution.break_even`.

CALIBRATION_SECONDS = _row(
    1.45e-3, "CPU seconds", "execution.break_even",
    "The machine that the figures were measured on took so long for a piece of work like a "
    "compiler's; another one's figures are in proportion.",
)  # fmt: skip
LOOK_SECONDS = _row(
    (5e-4, 2e-5), "CPU seconds, and for each operation", "execution.break_even",
    "To look for a graph on disk.",
)  # fmt: skip
PASS_SECONDS = _row(
    (2.5e-3, 3.4e-4, 2.9e-8), "CPU seconds, for each operation, for each pair of them",
    "execution.break_even",
    "To come from a graph to source. Some passes look at all operations for some: 0.25 s for 774 "
    "operations, 4 s for 6,100.",
)  # fmt: skip
FIRST_LOOK_SECONDS = _row(
    0.015, "CPU seconds", "execution.break_even",
    "What the first look of a process for a graph takes more: to digest nbta's sources.",
)  # fmt: skip
FIRST_BUILD_SECONDS = _row(
    0.17, "CPU seconds", "execution.break_even",
    "What the first build of a process takes more: to know Numba's types.",
)  # fmt: skip
LOAD_SECONDS = _row(
    5e-3, "CPU seconds", "execution.break_even",
    "To load machine code that is on disk.",
)  # fmt: skip
BUILD_SECONDS = _row(2.7e-2, "CPU seconds", "execution.break_even", "To build any source.")
STATEMENT_SECONDS = _row(9.2e-5, "CPU seconds", "execution.break_even", "To build a statement.")
DIFFERENT_SECONDS = _row(
    3.3e-4, "CPU seconds", "execution.break_even",
    "To build a statement unlike all others outside of loops: those that are like another one "
    "become a loop over pieces (`compiler.outlining`).",
)  # fmt: skip
LOOP_SECONDS = _row(
    1.35e-2, "CPU seconds", "execution.break_even",
    "To build a loop in such statements, of which LLVM makes vector instructions.",
)  # fmt: skip
BRANCH_SECONDS = _row(3.2e-3, "CPU seconds", "execution.break_even", "To build a branch.")
GAMMA_SECONDS = _row(
    2.7e-2, "CPU seconds", "execution.break_even",
    "To build a function of the gamma family, whose two ways are put there. Exponentials and "
    "their kin take no more than other arithmetic.",
)  # fmt: skip
OPERATION_SECONDS = _row(
    1e-6, "CPU seconds", "execution.break_even",
    "Of an operation one by one, at least: 19 of 20 programs take more.",
)  # fmt: skip
SOURCE_WAIT = _row(
    1.8, "times the estimate", "execution.break_even",
    "To come to source takes a third of the whole, and is estimated less well than what follows. "
    "It waits until this many times its estimate is spent: between what it takes and the whole "
    "any moment will do.",
)  # fmt: skip
LEARNING_RATE = _row(
    0.2, "part of a difference", "execution.break_even",
    "How much of a difference between an estimate and what was measured belongs to the machine; "
    "the rest belongs to the program.",
)  # fmt: skip
WALL_CLOCK_RUN = _row(
    1e-3, "seconds", "execution.runner",
    "A run as short as this is seldom interrupted, and is timed by the clock on the wall, which "
    "takes 50 ns; the processor's takes 0.3 us, and 7 us where system calls are watched.",
)  # fmt: skip

# The runtime.

UNWATCHED_TURNS = _row(
    4095, "iterations, less 1", "runtime.intrinsics",
    "Between two looks at signals: a look takes 0.1 us, with the interpreter's lock.",
)  # fmt: skip
WATCH_CYCLES = _row(
    1 << 26, "cycles of the time stamp counter", "runtime.parallel",
    "Between looks at signals, about 20 ms: where another thread keeps the interpreter's lock, a "
    "look takes 5 ms.",
)  # fmt: skip
SPINS = _row(
    64, "turns", "runtime.memory",
    "A waiting loop makes so many before other threads get the processor: 2 us, about a system "
    "call.",
)  # fmt: skip
COPY_PIECE = _row(
    2048, "bytes", "runtime.memory",
    "Of a copy whose addresses the processor's string instructions are slow for: glibc leaves "
    "pieces up to 2112 bytes, and more where vectors are longer, to vector instructions.",
)  # fmt: skip
LOOP_BYTES = _row(
    64, "bytes", "runtime.methods",
    "Up to here a plain loop beats a call of memcpy.",
)  # fmt: skip
MOST_PACKED = _row(
    1 << 20, "bytes", "runtime.layout",
    "Elements of so many or more are blocks of their own: some of them outgrow a gigabyte, and "
    "would then be copied.",
)  # fmt: skip
SHORTEST_RUN = _row(
    16, "iterations", "runtime.runs",
    "Fewer are not worth a look at the states of all their slots.",
)  # fmt: skip
LONGEST_RUN = _row(
    1024, "iterations", "runtime.runs",
    "Looked ahead at a time: what a loop that is left early may have looked at for nothing.",
)  # fmt: skip
LONGEST_VERSION = _row(
    500, "statements", "runtime.loop_versions",
    "Of a loop that is copied, at most: the copy is compiled, too.",
)  # fmt: skip
LONGEST_INLINED = _row(
    300, "statements of Numba's", "runtime.inlining",
    "Of a function that is put into a loop that calls it: about 60 lines.",
)  # fmt: skip
MOST_INLINED = _row(
    1000, "statements of Numba's", "runtime.inlining",
    "That come into one function: they are compiled there once more.",
)  # fmt: skip
FIRST_RESERVE = _row(
    1 << 30, "bytes of address space", "runtime.buffers",
    "Of the first mapped buffer of a growing array: memory only where it is written.",
)  # fmt: skip
INLINE_BYTES = _row(
    104, "bytes", "runtime.store",
    "What a store itself has room for, at least: ten numbers of 8 bytes with their states. A store "
    "with its owner then takes 464 bytes, and no second allocation, which takes 40 ns.",
)  # fmt: skip
LONGEST_INLINE = _row(
    1 << 10, "bytes", "runtime.store",
    "Arrays of a given size up to this one are one allocation. Room that is not used, as the "
    "elements turn out larger, is no more than this.",
)  # fmt: skip
LONGEST_WITH_RECORD = _row(
    1 << 12, "bytes", "runtime.buffers",
    "Up to here a buffer is one allocation with its record, and filled with zeros: 60 ns at most.",
)  # fmt: skip
POOL_BYTES = _row(
    256 << 20, "bytes", "runtime.settings",
    "Of dropped arrays that the process keeps for the next ones. The C library keeps up to 64 MiB "
    "at the end of its heap; a loop may drop several arrays, with state bytes.",
)  # fmt: skip
POOLED = _row(
    128 << 10, "bytes", "runtime.buffers",
    "Memory of the C library goes to the pool from here on, where glibc maps and returns pages. An "
    "append to an array of 100,000 numbers took 3.8 ns, and of 10,000 or 1,000,000 2.1.",
)  # fmt: skip
POOL_PLACES = _row(
    32, "buffers", "runtime.pool",
    "Of dropped arrays at most. All are looked at where memory is put there or taken, in 40 ns.",
)  # fmt: skip
POOL_SLACK = _row(
    4, "parts of what is asked for", "runtime.pool",
    "A buffer of the pool may be longer than what is asked for by one such part.",
)  # fmt: skip
LAZY_FREE = _row(
    8 << 20, "bytes", "runtime.pool",
    "From so many on the system may take memory in the pool back when it needs some. The call "
    "takes 7 us, 1.5% of filling so much; for 2 MiB it is 10 us, a tenth.",
)  # fmt: skip
SMALL_GROWTH = _row(
    4, "times", "runtime.buffers",
    "By which buffers grow until they are mapped: copies are a third of the elements, where "
    "doubling copies all of them. What is outgrown is kept, so that both take 2.9 times the "
    "elements in the mean.",
)  # fmt: skip
MOST_LANES = _row(
    1 << 16, "lanes", "runtime.lanes",
    "More are no help to any machine; each takes about half a kilobyte.",
)  # fmt: skip
SOURCES_LISTED = _row(
    8, "gradient arrays", "runtime.sources",
    "Most arrays have one or two, and no table.",
)  # fmt: skip
MOST_HALVES = _row(
    64, "half exponents", "ops.elementary.basic",
    "Up to here powers are products: twenty roundings are cheaper than `pow`, 1 ns beside 15.",
)  # fmt: skip
TOLD_SECONDS = _row(
    2.0, "seconds", "runtime.waiting",
    "After so long somebody waits, and is told for what.",
)  # fmt: skip
LOCK_SECONDS = _row(
    600.0, "seconds", "runtime.compiled",
    "After so long a process no longer waits: who has the lock may be stopped, or far away.",
)  # fmt: skip
LOCK_PAUSE = _row(
    0.2, "seconds", "runtime.compiled",
    "Between two looks at a lock, at most: 200 processes that wait take 2% of a processor.",
)  # fmt: skip
CODE_FOLDER = _row(
    256 << 20, "bytes", "runtime.machine_code",
    "Of all files; above it those go that were not used for longest.",
)  # fmt: skip
CODE_FILE = _row(
    64 << 20, "bytes", "runtime.machine_code",
    "One file may have so much; the largest that the tests make has 3 MB.",
)  # fmt: skip
LEFT_OVER_SECONDS = _row(
    3600, "seconds", "runtime.machine_code",
    "After so long a file that another process was writing is left over.",
)  # fmt: skip
TILE_HEIGHT = _row(
    6, "rows of a product's tile", "kernels.matrices",
    "With 4 vectors a row it takes 24 of 32 registers, with 2 vectors 12 of 16; five more hold "
    "what is being multiplied.",
)  # fmt: skip
SUM_CHAINS = _row(
    8, "independent sums", "kernels.matrices",
    "Keep two pipelines of four stages busy.",
)  # fmt: skip
DOT_TILES = _row(
    ((4, 4), (1, 8), (1, 4), (4, 1), (1, 1)), "rows and columns", "kernels.matrices",
    "What `dots` can do at once: up to 16 sums in registers.",
)  # fmt: skip
PLAIN_PRODUCT = _row(
    20_000, "multiply-adds of complex numbers", "kernels.matrices",
    "Below, a plain loop beats the call into BLAS.",
)  # fmt: skip
BLAS_PRODUCT = _row(
    1 << 28, "multiply-adds", "kernels.matrices",
    "Above, BLAS with two threads beats tiles with one, where vectors have 64 bytes. In GFLOP/s "
    "for float32, tiles, BLAS with one thread and with two, on a Zen 5 at 4 GHz: 237, 107, 188 "
    "for (128, 512, 512), 242, 119, 203 for (512, 512, 512), 236, 116, 199 for (512, 1024, 512), "
    "and 191, 103, 165 for x.T @ g of (128, 3200, 384). Where something else has one of two "
    "processors, a call of BLAS with two threads takes up to 30 ms.",
)  # fmt: skip
BLAS_PRODUCT_NARROW = _row(
    1 << 23, "multiply-adds", "kernels.matrices",
    "The same where vectors have less. With AVX2 only: 82, 103, 171 for (64, 256, 1024), 122, "
    "112, 184 for (128, 512, 512).",
)  # fmt: skip
PRODUCT_DEPTH = _row(
    256, "rows of the inner dimension", "kernels.matrices",
    "Gone through for one tile: 240 GFLOP/s for (64, 256, 1024), with 128 rows 231, with 64 rows "
    "218. Packing what is not transposed costs more than it gains: 213.",
)  # fmt: skip
PRODUCT_BYTES = _row(
    1 << 16, "bytes", "kernels.matrices",
    "PRODUCT_DEPTH rows of a tile have no more: they must fit a cache.",
)  # fmt: skip
TRANSPOSED_ROWS = _row(
    12, "rows", "kernels.matrices",
    "From here on a transposed b is written the other way round. In GFLOP/s by `dots` and by "
    "turning: 190 and 83 for (4, 256, 64), 182 and 117 for (8, 384, 128), 158 and 172 for (12, "
    "96, 32), 157 and 181 for (16, 96, 32), 184 and 182 for (24, 384, 128).",
)  # fmt: skip
SPILLED_BYTES = _row(
    1 << 20, "bytes", "kernels.matrices",
    "Such a b does not stay in the second cache; a row times it goes through ROW_SLICE rows of b "
    "at once, so that it reads it nearly in order: 72 GB/s for (1, 256, 1024), by tiles 51.",
)  # fmt: skip
ROW_SLICE = _row(8, "rows", "kernels.matrices", "See SPILLED_BYTES.")
FACTOR_BLOCK = _row(
    24, "rows and columns", "kernels.factors",
    "Bounds what of a factor is computed without products.",
)  # fmt: skip
FACTOR_PLAIN = _row(64, "rows", "kernels.factors", "Up to here there are no blocks.")
FACTOR_LAPACK = _row(
    768, "rows", "kernels.factors",
    "Above, LAPACK with its threads is faster than blocks, if it has the processors.",
)  # fmt: skip
FACTOR_PRODUCT = _row(
    (32, 64, 128), "rows, inner length and columns", "kernels.factors",
    "Of the products that blocks are made of.",
)  # fmt: skip
FACTOR_COLUMNS = _row(
    16, "columns, or rows", "kernels.factors",
    "Columns of a right side from which on blocks are worth it, and rows up to which a factor's "
    "derivative needs none: for 8 it takes 0.13 us, in one block 0.4.",
)  # fmt: skip
WORKSPACES = _row(
    64, "threads", "runtime.native_calls",
    "Bounds the threads that call one derivative from compiled code without Python; those beyond "
    "take turns in Python.",
)  # fmt: skip
UNTIMED_CALLS = _row(
    15, "calls, a power of two less one", "runtime.native_calls",
    "Between looks at the clock by calls from compiled code: a look takes 10 ns, a call 25. Where "
    "there is no such clock each looks at signals, 60 ns.",
)  # fmt: skip
UNWATCHED_ITEMS = _row(
    63, "items of a batch, a power of two less one", "runtime.native_batches",
    "Between looks at signals: a look takes 60 ns, the shortest items 15.",
)  # fmt: skip
HELPED_ITEM_CYCLES = _row(
    50_000, "cycles of the time stamp counter for an item", "runtime.native_batches",
    "Longer items of a batch in compiled code go to threads of Python's: these cost each item 3 to "
    "5 us, of which two threads save half.",
)  # fmt: skip
HELPED_BATCH_CYCLES = _row(
    5_000_000, "cycles of the time stamp counter for a batch", "runtime.native_batches",
    "What a batch takes on the caller's thread before others are thought of, 2 ms. They begin with "
    "the first item again, so four times as much must be left.",
)  # fmt: skip
WATCHED_ITEMS = _row(
    256, "items", "api.in_njit",
    "Bounds the lists whose items a call from compiled code compares one by one, in 0.2 us; for "
    "longer ones it asks Python, which takes 100.",
)  # fmt: skip

#: Each constant's row by its name, in the order above.
TABLE = dict(zip([name for name in list(globals()) if name.isupper()], _rows, strict=True))


def of_room(room: str) -> dict[str, object]:
    """The values that modules of a folder of the package decide by."""
    rows = TABLE.items()
    return {name: row.value for name, row in rows if row.module.partition(".")[0] == room}
