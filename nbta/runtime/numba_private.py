"""What nbta uses of Numba beyond its documented names, which any release of Numba may change.

Documented are `numba`, `numba.types` and `numba.extending`; no module but this one imports another.
Each name stands here once, with its use and with what there would be without it. All are looked up
when nbta is imported, so that a Numba which lacks one is told of at once and not in the middle of a
run.
"""

import re
import warnings
from functools import cache
from importlib import import_module
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

#: The versions of Numba that nbta was tested with.
OLDEST, NEWEST = "0.63", "0.68"
#: The newest versions that all tests passed with, of what decides which machine code there is.
TESTED = {"numba": NEWEST, "llvmlite": "0.50", "numpy": "2.4"}


def untested() -> dict[str, str]:
    """What is installed in a newer version than the tested one, whatever its last number."""
    modules = {"numba": numba, "llvmlite": llvmlite, "numpy": np}
    return {
        name: f"{modules[name].__version__} (tested up to {newest}.*)"
        for name, newest in TESTED.items()
        if number(modules[name].__version__) > number(newest)
    }


def number(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _warn_of_untested():
    """Say so once in a process; a private name that a version lacks is an error of its own."""
    if found := untested():
        names = ", ".join(f"{name} {version}" for name, version in found.items())
        pins = " ".join(f'"{name}=={newest}.*"' for name, newest in TESTED.items())
        message = (
            f"nbta was not tested with {names}, and results may be wrong: install a newer nbta, "
            f"or what it was tested with (pip install {pins})"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)


_warn_of_untested()


class Use(NamedTuple):
    """Why a private name is used, and what there would be without it."""

    why: str
    without: str


#: All that is used, by its path.
USES = {}


def _private(path, why, without, has=""):
    """A private module or name of Numba's, which has all members of a list."""
    USES[path] = Use(why, without)
    found = _found(path)
    missing = (
        [path] if found is None else [f"{path}.{m}" for m in has.split() if not _has(found, m)]
    )
    if missing:
        raise ImportError(
            f"nbta uses {missing[0]}, which Numba {numba.__version__} does not have: {why}. "
            f"nbta is tested with Numba {OLDEST} to {NEWEST}; install one of these "
            f'(pip install "numba>={OLDEST},<={NEWEST}.99"), or a newer nbta'
        )
    return found


def _found(path):
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name, None)
        return import_module(path) if found is None else found
    except ImportError:
        return None


def _has(found, member):
    for name in member.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


# Code of LLVM's.

cgutils = _private(
    "numba.core.cgutils",
    "intrinsics build LLVM's code with it",
    "each of its functions would be some lines of llvmlite's here",
    "alloca_once alloca_once_value create_struct_proxy false_bit get_null_value is_not_null "
    "get_or_insert_function if_likely if_unlikely is_null memset pack_array pointer_add raw_memcpy "
    "raw_memmove "
    "true_bit unpack_tuple voidptr_t",
)
imputils = _private(
    "numba.core.imputils",
    "values of arrays and iterators are forwarded with a reference, and functions are constants",
    "the methods that give the array back, and loops over arrays, would count wrong",
    "builtin_registry impl_ret_borrowed impl_ret_new_ref iternext_impl lower_constant RefType.NEW",
)
cpu_target = _private(
    "numba.core.registry.cpu_target",
    "sizes of items in memory, conversions between types and LLVM's symbols are asked for",
    "dtypes could not be checked while a user's function is compiled",
    "target_context typing_context",
)

# Types.

Conversion = _private(
    "numba.core.typeconv.Conversion",
    "says which conversions lose nothing",
    "a value that loses something could be written without an error",
    "exact promote safe",
)
AbstractTemplate = _private(
    "numba.core.typing.templates.AbstractTemplate",
    "types p[i] of pointers, and fields of records by name",
    "generated code would call functions for each load and store",
)
AttributeTemplate = _private(
    "numba.core.typing.templates.AttributeTemplate",
    "types fields of records",
    "records that arrays give would have no fields in compiled code",
)
infer_global = _private(
    "numba.core.typing.templates.infer_global",
    "registers the types of p[i]",
    "generated code would call functions for each load and store",
)
signature = _private(
    "numba.core.typing.templates.signature",
    "makes the signatures that those templates give",
    "as of the templates",
)
as_dtype = _private(
    "numba.np.numpy_support.as_dtype",
    "NumPy's dtype of a type of Numba's, for arrays that compiled code returns",
    "arrays made in compiled code could not go to Python",
)
ConfigStack = _private(
    "numba.core.targetconfig.ConfigStack",
    "says whether the function that takes an array runs without the interpreter's lock",
    "all functions would have to be counted as users of the array, and lose their fast paths",
    "top_or_none",
)

# Errors, and news of compiling.

TypingError = _private(
    "numba.core.errors.TypingError",
    "what is raised for arguments that compiled code does not take",
    "Numba would show another error than ours",
)
NumbaError = _private(
    "numba.core.errors.NumbaError",
    "tells Numba's refusal of a program from other errors",
    "such a program would fail, where it now runs by the reference executor",
)
event = _private(
    "numba.core.event",
    "tells when compiling of a function ended, so that its error's last line says what is wrong",
    "the reason would stand in the middle of Numba's text",
    "Listener register",
)

# Rewriting users' functions.

ir = _private(
    "numba.core.ir",
    "rewrites look at, and make, statements of users' functions",
    "as of the rewrites",
    "Assign Block Const Del Expr FreeVar Global Inst Jump Print Return Terminator Var Yield",
)
Rewrite = _private(
    "numba.core.rewrites.Rewrite",
    "method calls become function calls, and parallel loops tell their arrays",
    "a write in a loop would take 12 ns more, and parallel loops would be races",
)
register_rewrite = _private(
    "numba.core.rewrites.register_rewrite",
    "registers these rewrites",
    "as of the rewrites",
)
RewriteArrayOfConsts = _private(
    "numba.core.inline_closurecall.RewriteArrayOfConsts",
    "registers Numba's last rewrite when its module is imported",
    "loops over arrays would have no versions without checks, which the last rewrite makes",
)
InlineWorker = _private(
    "numba.core.inline_closurecall.InlineWorker",
    "puts functions that a loop calls with an array into the loop",
    "such a loop would take five times as long as one without the call",
    "inline_ir run_untyped_passes",
)
Compiler = _private(
    "numba.core.compiler.Compiler",
    "tells functions that Numba compiles in its usual way from others",
    "as of InlineWorker",
)
Flags = _private(
    "numba.core.compiler.Flags", "compares the options of two functions", "as of InlineWorker"
)
mark_try_block = _private(
    "numba.core.unsafe.eh.mark_try_block",
    "tells functions that catch exceptions from others",
    "after an exception such a function would go on with fields of an array as they were",
)
compute_cfg_from_blocks = _private(
    "numba.core.analysis.compute_cfg_from_blocks",
    "finds the loops of a function that will run in parallel",
    "parallel loops could not tell their arrays that they begin and end",
)
compute_use_defs = _private(
    "numba.core.analysis.compute_use_defs",
    "finds which variables such a loop uses",
    "as of compute_cfg_from_blocks",
)
compute_live_map = _private(
    "numba.core.analysis.compute_live_map",
    "finds which of them are there before it",
    "as of compute_cfg_from_blocks",
)
get_call_table = _private(
    "numba.core.ir_utils.get_call_table",
    "finds calls of prange",
    "as of compute_cfg_from_blocks",
)
mk_unique_var = _private(
    "numba.core.ir_utils.mk_unique_var",
    "names variables of the calls around parallel loops",
    "as of compute_cfg_from_blocks",
)
ConvertLoopPass = _private(
    "numba.parfors.parfor.ConvertLoopPass",
    "decides, as Numba itself will, which loops become parallel ones",
    "a loop that Numba takes and we do not would be a race",
    "_is_parallel_loop",
)

# Stable jitclasses.

_box = _private(
    "numba.experimental.jitclass._box",
    "the Python object of a store, in which eager arrays find the store's address",
    "each operation from Python would go through Numba's dispatcher, 140 ns in place of 55",
    "Box box_dataptr_offset box_meminfoptr_offset",
)
_jitclass = _private(
    "numba.experimental.jitclass.base",
    "makes a jitclass whose type has a stable name",
    "functions that take an array would be compiled anew in each process (numba/numba#4830)",
    "ClassBuilder InstanceModel JitClassType register_class_type",
)
_boxing = _private(
    "numba.experimental.jitclass.boxing",
    "takes a store out of its Python object",
    "as of the jitclass with a stable name",
    "_unbox_class_instance",
)

# Compiling.

Dispatcher = _private(
    "numba.core.dispatcher.Dispatcher",
    "tells users' compiled functions from others",
    "compiled programs would call them by way of Python",
    "nopython_signatures",
)
_typing = _private(
    "numba.core.typing.context.BaseContext",
    "chooses which of its declared signatures a compiled function is called by",
    "a number that a call casts, as 2.7 for an int64, would not be cast in the derivative",
    "resolve_overload",
)
_registry = _private(
    "numba.core.typing.templates.builtin_registry",
    "knows which functions have overloads for compiled code",
    "derivatives would be of the Python code that Numba does not look at, often a stub",
    "globals",
)
_FunctionCompiler = _private(
    "numba.core.dispatcher._FunctionCompiler",
    "compiles parts of kernels without wrappers and machine code of their own",
    "the first use of an array would take 24 s in place of 6",
    "_customize_flags _compile_core",
)
CFunc = _private(
    "numba.core.ccallback.CFunc",
    "tells users' functions of numba.cfunc from others",
    "compiled programs would call them by way of Python",
)
NumbaWarning = _private(
    "numba.core.errors.NumbaWarning",
    "is the category of what Numba says of its disk cache",
    "who silences Numba's warnings would go on hearing of nbta's",
)
_events = _private(
    "numba.core.event",
    "tells which functions are compiled now",
    "nobody could say which function is not saved on the disk, and why",
    "Listener register",
)
global_compiler_lock = _private(
    "numba.core.compiler_lock.global_compiler_lock",
    "one thread at a time compiles, and a fork waits for it",
    "a child of a fork could wait for ever for its first compiled function",
)
CompilerBase = _private(
    "numba.core.compiler.CompilerBase",
    "source that calls users' functions goes through fewer of Numba's passes",
    "such programs would take twice as long to compile",
)
PassManager = _private(
    "numba.core.compiler_machinery.PassManager", "holds these passes", "as of CompilerBase"
)
#: The passes that such source needs, in order.
PASSES = tuple(
    _private(f"numba.core.{path}", "one of these passes", "as of CompilerBase")
    for path in (
        "untyped_passes.TranslateByteCode", "untyped_passes.FixupArgs",
        "untyped_passes.IRProcessing", "typed_passes.NopythonTypeInference",
        "typed_passes.IRLegalization", "typed_passes.NativeLowering",
        "typed_passes.NoPythonBackend",
    )
)  # fmt: skip
FunctionDescriptor = _private(
    "numba.core.funcdesc.FunctionDescriptor",
    "describes a function whose code is made without Numba's passes",
    "programs would take four times as long to compile",
    "llvm_cfunc_wrapper_name llvm_cpython_wrapper_name",
)
callconv = _private(
    "numba.core.callconv",
    "says that such a function divides as NumPy does, and how its parts are left",
    "as of FunctionDescriptor",
    "create_error_model CPUCallConv",
)
FastMathOptions = _private(
    "numba.core.cpu_options.FastMathOptions",
    "says that it may join a product and a sum",
    "as of FunctionDescriptor",
)
fastmathpass = _private(
    "numba.core.fastmathpass",
    "tells LLVM so",
    "as of FunctionDescriptor",
    "rewrite_module",
)
_Typing = _private(
    "numba.core.typing.context.Context",
    "knows types of numbers' operators and functions, without all of Numba's other tables",
    "the first program of a process would take half a second longer",
    "_insert_global _lookup_global _remove_global insert_attributes insert_function",
)
_templates = _private(
    "numba.core.typing.templates",
    "has these types, and types loops over tuples",
    "as of typing.context.Context",
    "_OverloadAttributeTemplate builtin_registry",
)
#: Registers types of what has no name in Python, as of the beginning of a loop.
infer = _templates.builtin_registry.register
Intrinsic = _private(
    "numba.core.extending._Intrinsic",
    "the code of our own intrinsics, without a search for it",
    "as of FunctionDescriptor",
)

# Random numbers.

helperlib = _private(
    "numba._helperlib",
    "says where the state of a thread's random numbers is",
    "a run that compiled code gives up would draw the numbers after those of its first try",
    "rnd_get_np_state_ptr rnd_get_py_state_ptr",
)

# Machine code, on disk and in memory.

FunctionCache = _private(
    "numba.core.caching.FunctionCache",
    "keeps kernels on disk, which are as old as the whole runtime",
    "kernels of another version could run, or all be compiled in each process",
    "_index_key cache_path flush load_overload save_overload",
)
_dynfunc = _private(
    "numba._dynfunc",
    "makes a Python function of machine code from a file",
    "programs from the disk cache would be called by way of ctypes",
    "make_function",
)
_environments = _private(
    "numba.core.environment",
    "what such a function and Numba's code refer to",
    "as of _dynfunc",
    "Environment lookup_environment",
)
_nrt = _private(
    "numba.core.runtime._nrt_python",
    "addresses of Numba's functions that machine code calls",
    "machine code from a file could not be loaded",
    "c_helpers",
)
_rtsys = _private(
    "numba.core.runtime.rtsys",
    "lets LLVM know more of these",
    "as of _nrt_python",
    "initialize",
)
_CodeLibrary = _private(
    "numba.core.codegen.JITCodeLibrary",
    "the object code of a function, for our own files",
    "compiled programs would go through Numba's cache, whose tables take half a second to fill",
    "_get_compiled_object _optimize_functions _optimize_final_module _finalize_final_module "
    "_finalize_dynamic_globals get_pointer_to_function",
)
_ReduceMixin = _private(
    "numba.core.serialize.ReduceMixin",
    "takes compiled functions apart to pickle them",
    "the source of compiled functions would not travel with them",
    "_rebuild _reduce_class _reduce_states",
)
_cloudpickle = _private(
    "numba.cloudpickle",
    "pickles functions where the user has no cloudpickle",
    "functions could not be pickled by value there",
    "Pickler",
)
VECTORIZED = _private(
    "numba.np.ufunc.dufunc.DUFunc",
    "functions of `vectorize` are followed by their source",
    "they would be refused where only the run knows a value",
    "types",
)
GENERALIZED = _private(
    "numba.np.ufunc.gufunc.GUFunc",
    "functions of `guvectorize` are followed by their source",
    "they would be refused where only the run knows a value",
    "types",
)
STENCIL = _private(
    "numba.stencils.stencil.StencilFunc",
    "kernels of `numba.stencil` are followed by their source",
    "stencils would end in an error of Numba's where only the run knows a value",
    "get_return_type",
)
_signatures = _private(
    "numba.np.ufunc.sigparse",
    "a signature such as (m,n),(n)->(m) says which axes a kernel takes",
    "it would be parsed here",
    "parse_signature",
)
_threading = _private(
    "numba.np.ufunc.parallel",
    "knows which threading layers can be used",
    "`nbta info` could not say which one will be",
    "_check_tbb_version_compatible",
)

#: Where the Python object of a jitclass instance keeps its memory's owner and its fields' address.
BOX_OWNER, BOX_FIELDS = _box.box_meminfoptr_offset, _box.box_dataptr_offset
Box, unbox_instance = _box.Box, _boxing._unbox_class_instance
JitClassType = _jitclass.JitClassType
ClassBuilder, InstanceModel = _jitclass.ClassBuilder, _jitclass.InstanceModel
register_class_type = _jitclass.register_class_type
Environment, lookup_environment = _environments.Environment, _environments.lookup_environment
make_function = _dynfunc.make_function
NumbasPickler = _cloudpickle.Pickler
#: In the order in which Numba takes them.
COMPILER_LOCKS = [global_compiler_lock, *filter(None, [getattr(llvm.ffi.lib, "_lock", None)])]


def keep_on_disk(dispatcher, cache):
    """Give a compiled function a disk cache of another kind than Numba's."""
    dispatcher._cache = cache


def stamp(cache, text):
    """Let all entries of a disk cache be as old as a text."""
    cache._cache_file._source_stamp = text


class _Compiled(_events.Listener):
    """Follows which functions are compiled, one inside another, under the compiler's lock."""

    def __init__(self):
        self.dispatchers = []

    def on_start(self, event):
        self.dispatchers.append(event.data["dispatcher"])

    def on_end(self, event):
        # Numba imports its extensions while it compiles the first function of a process: if that
        # is what imports this module, the end of a compilation comes whose start went unheard.
        if self.dispatchers and self.dispatchers[-1] is event.data["dispatcher"]:
            self.dispatchers.pop()


_compiled = _Compiled()
_events.register("numba:compile", _compiled)


def being_compiled():
    """Users' functions that are compiled now and that Numba would save on the disk."""
    return [each for each in _compiled.dispatchers if each._cache.cache_path is not None]


def environments_of(overload):
    """What a compiled function's code refers to, and the code that it was linked with.

    Parameters
    ----------
    overload : numba.core.compiler.CompileResult

    Returns
    -------
    list of Environment
    """
    names = (each.name for each in overload.library._get_module_for_linking().global_variables)
    found = [lookup_environment(name) for name in names if name.startswith(_ENVIRONMENT)]
    return [overload.environment, *filter(None, found)]


_ENVIRONMENT = "_ZN08NumbaEnv"


def has_entry(cache, signature, target_context) -> bool:
    """Whether a disk cache has a function for a signature."""
    key = cache._index_key(signature, target_context.codegen())
    return key in cache._cache_file._load_index()


class PartCompiler(_FunctionCompiler):
    """Compiles a function that only other compiled functions call.

    It gets no Python wrapper and no machine code of its own, and is optimised once, inside the
    entry point that it is linked into. That takes the kernels from 24 s of compiling to 6.
    """

    def _customize_flags(self, flags):
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    def _compile_core(self, args, return_type):
        result = super()._compile_core(args, return_type)
        library = result.library
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        key = [].append  # Numba knows compiled functions by a built-in each; any will do
        context = self.targetdescr.target_context
        context.insert_user_function(key, result.fndesc, [library])
        return result._replace(entry_point=key)


def compile_by(dispatcher, compiler_class):
    """Let a compiler of another class compile what a dispatcher is called with."""
    old = dispatcher._compiler
    dispatcher._compiler = compiler_class(
        old.py_func, old.targetdescr, old.targetoptions, old.locals, old.pipeline_class
    )


def overloads_of(function) -> list:
    """What gives the implementations of a function for compiled code; none for most functions.

    Numba's own lookup would load all its types first, which takes half a second.
    """
    kinds = (kind for value, kind in _registry.globals if value is function)
    templates = (each for kind in kinds for each in getattr(kind, "templates", ()))
    makers = (getattr(each, "_overload_func", None) for each in templates)
    return [each for each in makers if each is not None]


def declared_signatures(dispatcher) -> list:
    """The signatures that a function is compiled for; none where each call may add another."""
    return [] if dispatcher._can_compile else list(dispatcher.nopython_signatures)


def resolved_signature(dispatcher, signatures, kinds):
    """The one of some signatures that Numba calls for arguments of some types; None for none.

    The layout of arrays is no matter: nbta has them in C order, and casts none of their items.
    """
    plain = {each.replace(args=tuple(map(_in_c_order, each.args))): each for each in signatures}
    found = dispatcher.typingctx.resolve_overload(dispatcher.py_func, [*plain], kinds, {})
    return plain.get(found)


def _in_c_order(kind):
    return kind.copy(layout="C", readonly=False) if isinstance(kind, numba.types.Array) else kind


def forget_literals(dispatcher):
    """Let a function take literal arguments as any others: not one compiled for each."""
    find_template = dispatcher.get_call_template

    def general_template(args, keywords):
        return find_template([numba.types.unliteral(kind) for kind in args], keywords)

    dispatcher.get_call_template = general_template


class ShortPipeline(CompilerBase):
    """Numba's passes without those that generated code which calls users' functions has no need of.

    There are no closures, no lists and no calls to be inlined in it, and names keep their type, so
    that LLVM's own single assignment form does: half the time to compile.
    """

    def define_pipelines(self):
        """The passes, in order."""
        manager = PassManager("nbta")
        for step in PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class _NumberTyping(_Typing):
    """Types of what numbers can do.

    Numba's own context fills all its tables as soon as it meets an attribute of an ``@overload``,
    which imports half of it and SciPy's linear algebra.
    """

    def learn(self, registry):
        """Take over what numbers may need of a table."""
        for template in registry.functions:
            self.insert_function(template(self))
        for template in registry.attributes:
            if not issubclass(template, _templates._OverloadAttributeTemplate):
                self.insert_attributes(template(self))
        for value, kind in registry.globals:
            known = self._lookup_global(value)
            if known is not None:
                kind = known.augment(kind)
                self._remove_global(value)
            self._insert_global(value, kind)


@cache
def number_typing():
    """Types of numbers' operators and functions, whose code `cpu_target` then knows as well."""
    for name in ("numbers", "rangeobj", "tupleobj"):
        _later(f"numba.cpython.{name}")
    codes = [_later(f"numba.{n}") for n in ("cpython.cmathimpl", "cpython.mathimpl", "np.npyimpl")]
    typing = _NumberTyping()
    kinds = [_later(f"numba.core.typing.{name}") for name in ("cmathdecl", "mathdecl", "npydecl")]
    for registry in (*(kind.registry for kind in kinds), _templates.builtin_registry):
        typing.learn(registry)
    for registry in (*(code.registry for code in codes), imputils.builtin_registry):
        cpu_target.target_context.install_registry(registry)
    return typing


def _later(path):
    """A module of Numba's with such types or code, which importing nbta does not wait for."""
    return _private(path, "types or code of numbers", "as of typing.context.Context")


class _AheadCompiler(_FunctionCompiler):
    """Compiles a function, with its wrappers, as far as LLVM's code."""

    def _customize_flags(self, flags):
        flags.no_compile = True
        return flags


def lowered(dispatcher, signature):
    """The library of a function and what it calls, not optimised, and Numba's names for it."""
    compile_by(dispatcher, _AheadCompiler)
    with global_compiler_lock:
        result = dispatcher._compiler._compile_core(signature.args, signature.return_type)
        library = result.library
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        library.finalize()
        library._finalize_dynamic_globals()
    return library, result.fndesc


def bitcode_of(library) -> bytes:
    """LLVM's code of such a library."""
    return library._final_module.as_bitcode()


def optimised(bitcode):
    """LLVM's code after Numba's passes, and the object file, for Numba's processor."""
    codegen = cpu_target.target_context.codegen()
    library = codegen.create_library("ahead")
    library._final_module = llvm.parse_bitcode(bitcode)
    library._optimize_final_module()
    return library._final_module, codegen._tm.emit_object(library._final_module)


def processor_features() -> set:
    """What the processor has that Numba compiles for, by LLVM's names."""
    features = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    return {feature[1:] for feature in features if feature.startswith("+")}


def new_library(context, name):
    """Where a function's code goes that is optimised as a whole, once, and not loaded.

    Numba goes through each function, and then through all, once more before, for the sake of
    references that it counts. Without that a function takes half the time, and what comes out is as
    fast: a loop that is optimised again is also unrolled and divided into vectors again.
    """
    library = context.codegen().create_library(name)
    codegen = library.codegen
    library.enable_object_caching()

    def laid_out(module):
        module.data_layout = codegen._data_layout

    def optimise():
        manager, builder = codegen._module_pass_manager()
        manager.run(library._final_module, builder)

    def emit():
        library._finalize_dynamic_globals()
        library._compiled_object = codegen._tm.emit_object(library._final_module)
        library._finalized = True

    library._optimize_functions, library._optimize_final_module = laid_out, optimise
    library._finalize_final_module = emit
    return library


def final_module(library):
    """LLVM's module after a compiled function."""
    return library._final_module


def object_code(library) -> bytes:
    """The object file of a compiled function."""
    return library._get_compiled_object()


def introduce_runtime(names):
    """Let LLVM know the functions of Numba's runtime; the names that it does not know even then.

    It aborts the process where code refers to one of these.
    """
    context = cpu_target.target_context  # what makes it tells LLVM of most
    llvm.add_symbol("NRT_Free", _nrt.c_helpers["Free"])  # of a raised error's arguments

    def unknown():
        return [name for name in names if not llvm.address_of_symbol(name)]

    if unknown():
        _rtsys.initialize(context)  # 30 ms
    return unknown()


def is_pickled_by_numba(obj) -> bool:
    """Whether an object goes through a pickler of Numba's own, which would hide what is in it."""
    return getattr(type(obj), "__reduce__", None) is _ReduceMixin.__reduce__


def taken_apart(obj) -> tuple:
    """The class of such an object, and what it is made of; see `put_together`."""
    return obj._reduce_class(), obj._reduce_states()


def put_together(kind, states):
    """An object that was taken apart, in another process."""
    return kind._rebuild(**states)


def layer_is_installed(name) -> bool:
    """Whether a threading layer can be used; asking does not start it."""
    module = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}.get(name)
    try:
        if name == "tbb":
            _threading._check_tbb_version_compatible()
        return module is not None and bool(import_module(f"numba.np.ufunc.{module}"))
    except ImportError:
        return False


def kernel_indices(function, names):
    """The constant indices with which the kernel of a stencil reads some of its arguments.

    Tuples; None where an index is no constant.
    """
    kernel, found = function.kernel_ir, set()
    for block in kernel.blocks.values():
        for each in [*block.find_exprs("getitem"), *block.find_exprs("static_getitem")]:
            if getattr(kernel.get_definition(each.value), "name", None) not in names:
                continue
            try:
                index = kernel.infer_constant(each.index) if each.op == "getitem" else each.index
            except NumbaError:
                return None
            found.add(index if isinstance(index, tuple) else (index,))
    return found


def kernel_type(function, kinds):
    """The dtype that the kernel of a stencil gives for arguments of some types."""
    function._typingctx.refresh()
    return as_dtype(function.get_return_type(kinds)[0].dtype)


class Universal(NamedTuple):
    """What a universal function of Numba's was made of.

    Attributes
    ----------
    kernel : types.FunctionType
        The user's.
    inputs, outputs : int
    signature : tuple or None
        Names of the axes that the kernel takes of each input and result; None for `vectorize`.
    declared : list
        Pairs of dtypes, of inputs and of results, that the user declared; empty where Numba
        compiles for what comes.
    is_array : list of bool
        Whether the kernel takes an input as an array; without declared types only for its axes.
    """

    kernel: object
    inputs: int
    outputs: int
    signature: tuple | None
    declared: list
    is_array: list


def universal_function(function) -> Universal:
    """What a function of `vectorize` or `guvectorize` was made of."""
    kernel, signature = function._dispatcher.py_func, None
    frozen = function._frozen
    if isinstance(function, GENERALIZED):
        builder = function.gufunc_builder
        signature = tuple(map(tuple, _signatures.parse_signature(builder.signature)))
        frozen = not function.is_dynamic
        given = [sig.args for sig in builder._sigs[:1]] if frozen else []
        inputs, outputs = map(len, signature)
        is_array = [bool(core) for core in signature[0]]
        for args in given:
            is_array = [isinstance(kind, numba.types.Array) for kind in args[:inputs]]
    else:
        inputs, outputs = kernel.__code__.co_argcount, 1
        is_array = [False] * inputs
    loops = [loop.split("->") for loop in function.types] if frozen else []
    declared = [tuple([*map(np.dtype, part)] for part in loop) for loop in loops]
    return Universal(kernel, inputs, outputs, signature, declared, is_array)
