"""The loop IR: what is between a graph and machine code.

A rule of an operation adds statements to a `Block`; LLVM's code is built from them by a walk. They
are small, typed nodes, each said once here:

========================  =================================================================
`Name`, `Constant`        a variable, or what a function refers to; a number
`Unary`, `Binary`         arithmetic, by Python's signs
`Compare`, `Logical`      truth values
`Select`                  one of two values
`Load`                    an item of a buffer
`Call`, `Attribute`       what a function gives; a part of a value, or a module's name
`Tuple`                   several values, as an argument
`Assign`, `Unpack`        give a variable a value; several ones what a user's function gives
`Store`, `Accumulate`     change an item of a buffer; combine what is there with a value
`For`, `While`, `If`      counted loops, loops with a test, branches
`Guard`                   leaves the function with a status where a condition holds
`Evaluate`                a call for its effect
`Break`, `Return`         leave a loop; leave the function with a status
`Versions`                a block that is there twice, by truth values that no iteration changes
`Comment`, `Mark`         for people: text, and the user's lines that statements come from
========================  =================================================================

Expressions have no effects and are compared by what they say; statements are compared by identity,
as the same one may be at two places. Nodes are not changed once they are in a block: passes make
new ones. A variable has one type, that of what is assigned to it first. A buffer is a variable that
a call of ``pointer``, ``room`` or ``array_in`` gives a value; the last argument of these is its
alias class, by which LLVM is told which buffers lie apart.

Each module is one thing that is done with nodes:

- `nodes` says what there is, `building` how rules make it: statements, `Block`;
- `printing` shows it as Python, for ``f.source`` and as the key of machine code on disk;
- `verifying` holds it against the rules that code relies on (with ``NBTA_DEBUG=1``, after each
  program);
- `interpreting` runs it without compiling: a second oracle, beside the executor of graphs;
- `versions` makes two versions of a block, in one of which nothing asks for a guard;
- `jamming` goes through several iterations of an outer loop at once (unroll and jam);
- `structure` tells which statements are equal but for names and numbers, for outlining;
- `saving` makes bytes of functions for the disk, and functions of these.

Nothing reads code as text: a string that stands for an expression is a name.
"""

from nbta.loops.building import (
    Block,
    accumulate,
    assign,
    attempt,
    between,
    both,
    call,
    call_at,
    comment,
    do,
    either,
    expression,
    leave,
    loop_while,
    negated,
    otherwise,
    over,
    refuse,
    select,
    several,
    when,
)
from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Attribute,
    Binary,
    Break,
    Call,
    Comment,
    Compare,
    Constant,
    Evaluate,
    Expression,
    For,
    Function,
    Guard,
    If,
    Load,
    Logical,
    Mark,
    Name,
    Pass,
    Return,
    Select,
    Statement,
    Store,
    Tuple,
    Unary,
    Unpack,
    Versions,
    While,
)
from nbta.loops.printing import printed, printed_function

__all__ = [
    "Accumulate",
    "Assign",
    "Attribute",
    "Binary",
    "Block",
    "Break",
    "Call",
    "Comment",
    "Compare",
    "Constant",
    "Evaluate",
    "Expression",
    "For",
    "Function",
    "Guard",
    "If",
    "Load",
    "Logical",
    "Mark",
    "Name",
    "Pass",
    "Return",
    "Select",
    "Statement",
    "Store",
    "Tuple",
    "Unary",
    "Unpack",
    "Versions",
    "While",
    "accumulate",
    "assign",
    "attempt",
    "between",
    "both",
    "call",
    "call_at",
    "comment",
    "do",
    "either",
    "expression",
    "leave",
    "loop_while",
    "negated",
    "otherwise",
    "over",
    "printed",
    "printed_function",
    "refuse",
    "select",
    "several",
    "when",
]
