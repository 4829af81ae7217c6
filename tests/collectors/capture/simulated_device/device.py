# ruff: noqa
# fmt: off
"""A simulated 'neuron' device in pure Python: PrivateUse1 with kernels over CPU storage.

Tensor data live in `raw`, a CPU tensor; every kernel unwraps, runs on the CPU and wraps the result."""
import torch, time
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
_setup_privateuseone_for_python_backend("neuron")
aten = torch.ops.aten
HOOK = None       # callable(name, t0_ns, t1_ns) called for each simulated kernel


class NT(torch.Tensor):
    pass

def wrap(t):
    if not isinstance(t, torch.Tensor) or isinstance(t, NT): return t
    r = torch._C._acc.create_empty_tensor(list(t.shape), t.dtype)
    r.__class__ = NT
    setraw(r, t)
    return r

# Autograd saves op *outputs* as detached shallow copies: a new TensorImpl without our attribute but with the
# same StorageImpl, so data must also be reachable through the storage.
from torch.multiprocessing.reductions import StorageWeakRef
TAB = {}
def setraw(r, t):
    r.raw = t
    st = r.untyped_storage(); TAB[st._cdata] = (StorageWeakRef(st), t)
    if len(TAB) > 4096:
        for k in [k for k, (w, _) in TAB.items() if w.expired()]: del TAB[k]

def un(x):
    if not isinstance(x, torch.Tensor) or x.device.type != 'neuron': return x
    r = getattr(x, 'raw', None)
    if r is None: r = TAB[x.untyped_storage()._cdata][1]
    return r

def kernel(func):
    def k(*args, **kw):
        from torch.utils._pytree import tree_map
        if 'device' in kw: kw = {**kw, 'device': torch.device('cpu')}
        a, b = tree_map(un, args), tree_map(un, kw)
        t0 = time.time_ns(); out = func(*a, **b); t1 = time.time_ns()
        if HOOK is not None: HOOK(func._schema.name, t0, t1)
        rets = func._schema.returns
        # in-place / out variants return the original wrapper
        if rets and rets[0].alias_info is not None and rets[0].alias_info.is_write:
            return args[0] if not func._schema.name.endswith('.out') else kw.get('out', args[0])
        return tree_map(wrap, out)
    return k
L = torch.library.Library("_", "IMPL")
def reg(*ops):
    for o in ops:
        p, ov = (o.split('.') + ['default'])[:2]
        torch.library.impl(f"aten::{p}" + ('' if ov == 'default' else '.' + ov), "privateuseone")(kernel(getattr(getattr(aten, p), ov)))
reg('add.Tensor', 'add_.Tensor', 'mul.Tensor', 'sub.Tensor', 'div.Tensor', 'mm', 'addmm', 'relu', 'threshold_backward', 'sum', 'sum.dim_IntList', 'mean',
    'view', 't', 'expand', 'as_strided', 'detach', 'ones_like', 'fill_.Scalar', 'zero_', 'empty_strided', 'empty.memory_format', 'transpose.int', 'pow.Tensor_Scalar', 'mul_.Tensor', 'zeros_like', 'empty_like', 'clone', 'mul.Scalar', 'add_.Scalar', 'neg', 'addcmul_', 'sqrt', 'gelu', 'gelu_backward', '_local_scalar_dense')
@torch.library.impl("aten::_copy_from", "privateuseone")
def _copy_from(a, b, non_blocking=False):
    t0 = time.time_ns()
    s = un(a)
    if b.device.type == 'neuron':
        if hasattr(b, 'raw'): b.raw.copy_(s)
        else: setraw(b, s.clone())
    else: b.copy_(s)
    if HOOK is not None: HOOK('memcpy', t0, time.time_ns())
    return b
