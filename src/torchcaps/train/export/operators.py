"""The operators that a .pt2 file may name.

They are those of all model families with all routings, decoders and trunks. None reads or writes a file,
resizes memory or runs a program.
"""

from __future__ import annotations

_NAMES = """
    aten.__and__.Tensor
    aten._assert_tensor_metadata.default
    aten.abs.default
    aten.add.Tensor
    aten.alias.default
    aten.amax.default
    aten.arange.default
    aten.argmax.default
    aten.batch_norm.default
    aten.bitwise_not.default
    aten.cat.default
    aten.clamp.default
    aten.clamp_min.default
    aten.contiguous.default
    aten.conv2d.default
    aten.conv2d.padding
    aten.conv3d.default
    aten.conv_transpose2d.input
    aten.detach.default
    aten.diagonal.default
    aten.digamma.default
    aten.div.Tensor
    aten.dropout.default
    aten.einsum.default
    aten.exp.default
    aten.expand.default
    aten.expand_as.default
    aten.expm1.default
    aten.eye.default
    aten.flatten.using_ints
    aten.floor_divide.default
    aten.gather.default
    aten.ge.Scalar
    aten.gelu.default
    aten.gru_cell.default
    aten.index.Tensor
    aten.index_copy.default
    aten.index_select.default
    aten.instance_norm.default
    aten.layer_norm.default
    aten.leaky_relu.default
    aten.leaky_relu_.default
    aten.linalg_cross.default
    aten.linalg_vector_norm.default
    aten.linear.default
    aten.log.default
    aten.log_sigmoid.default
    aten.logsumexp.default
    aten.lt.Scalar
    aten.mT.default
    aten.masked_fill.Scalar
    aten.matmul.default
    aten.max_pool2d.default
    aten.mean.dim
    aten.mul.Tensor
    aten.neg.default
    aten.new_full.default
    aten.new_zeros.default
    aten.one_hot.default
    aten.pad.default
    aten.permute.default
    aten.reciprocal.default
    aten.relu.default
    aten.relu_.default
    aten.reshape.default
    aten.rsqrt.default
    aten.rsub.Scalar
    aten.scaled_dot_product_attention.default
    aten.scatter.value
    aten.select.int
    aten.sigmoid.default
    aten.slice.Tensor
    aten.softmax.int
    aten.sqrt.default
    aten.square.default
    aten.squeeze.dim
    aten.stack.default
    aten.sub.Tensor
    aten.sum.dim_IntList
    aten.sym_size.int
    aten.to.dtype
    aten.transpose.int
    aten.unbind.int
    aten.unflatten.int
    aten.unfold.default
    aten.unsqueeze.default
    aten.view.default
    aten.where.ScalarOther
    aten.where.self
    aten.zeros_like.default
    higher_order.wrap_with_autocast
"""

OPERATORS = frozenset(f"torch.ops.{name}" for name in _NAMES.split()) | {"_operator.mul"}  # of sizes
