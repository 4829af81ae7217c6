"""Top-level packages that are installed, not written by the user: tracers record their files without the folder they lie in.

Kineto cuts every prefix of sys.path from file names, so `site-packages/transformers/trainer.py` and a user's own
`model/trainer.py` look alike; only the name tells.
"""

from __future__ import annotations

import sys

TORCH = frozenset(
    (
        "torch",
        "torch_npu",
        "torch_xla",
        "torch_neuronx",
        "torchgen",
        "functorch",
        "caffe2",
        "triton",
        "torchinductor",
        "intel_extension_for_pytorch",
    )
)
"""PyTorch itself and what it generates: never the line to change."""

PACKAGES = TORCH | frozenset(
    """
    accelerate aiter aiohttp albumentations apex asyncpg attrs autogptq awq bitsandbytes black boto3 botocore certifi
    chex clip click cloudpickle colossalai composer cupy cv2 cvxpy dask datasets decord deepspeed diffusers distributed
    dllogger einops evaluate fairscale fairseq faiss fastapi fbgemm_gpu fire flash_attn flashinfer flax fsspec fvcore
    gradio grpc h5py httpx huggingface_hub hydra imageio ipykernel IPython jax jaxlib joblib jsonschema keras
    kornia lightning lightning_fabric liger_kernel lm_eval matplotlib megatron mlflow mmcv mmdet mmengine monai mpi4py
    msgpack msgspec neuronx_distributed nltk numba numpy nvidia omegaconf onnx onnxruntime open_clip openai optax
    optimum packaging pandas peft PIL pkg_resources pluggy polars protobuf psutil pyarrow pydantic pydantic_core pygments
    pytest _pytest pytorch_lightning pytz ray regex requests rich safetensors scipy seaborn sentence_transformers
    sentencepiece setuptools sgl_kernel sglang sklearn skimage soundfile spacy starlette sympy tensorboard tensorboardX
    tensordict tensorflow tensorrt tensorrt_llm tiktoken timm tokenizers toolz torch_geometric torch_scatter
    torch_sparse torchao torchaudio torchdata torchmetrics torchrec torchtext torchtitan torchtune torchvision tqdm
    transformer_engine transformers trl typing_extensions unsloth urllib3 uvicorn uvloop vllm wandb webdataset websockets
    xformers xgboost yaml zmq zstandard
    """.split()  # noqa: SIM905
)

_OFTEN_USER_NAMES = frozenset(("test", "profile", "code", "trace", "main", "bench"))


def package_of(file: str) -> str | None:
    """'torch', 'standard' or 'installed' for a relative file of a known package; None for what may be user code."""
    first, _, rest = file.partition("/")
    name = first.removesuffix(".py")
    if name in TORCH:
        return "torch"
    if name in PACKAGES and (rest or first.endswith(".py")):
        return "installed"
    if name in sys.stdlib_module_names and (rest or name not in _OFTEN_USER_NAMES):
        return "standard"
    return None
