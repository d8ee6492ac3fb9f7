# The C types of traffic.py. Types of other variables follow from these.
cimport cython
from libc cimport math
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef double ROUNDING
cdef int64_t _ZERO, _NINE, _MINUS, _MOST

@cython.locals(
    found=int64_t[::1],
    count=int64_t,
    value=int64_t,
    digits=int64_t,
    sign=int64_t,
    digit=int64_t,
    code=int64_t,
)
cpdef object numbers(const uint8_t[:] text)

cpdef int64_t hops(int64_t one, int64_t other, const int64_t[:] node_of) noexcept

@cython.locals(
    begin=int64_t[::1], free=int64_t[::1], peer=uint32_t[::1], row=uint32_t[::1]
)
cpdef tuple index(const int64_t[:] source, const int64_t[:] target, Py_ssize_t count)
cdef void _fill(
    const int64_t[:] one,
    const int64_t[:] other,
    int64_t[::1] free,
    uint32_t[::1] peer,
    uint32_t[::1] row,
) noexcept

@cython.locals(g=int64_t, sent=double[:, :, ::1])
cpdef object crossing(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] rates,
    const int64_t[:] group,
    Py_ssize_t groups,
    const int64_t[:] place,
    const int64_t[:] node_of,
    Py_ssize_t nodes,
)

cpdef bint is_above(
    const double[:, :, :] sent, const double[:, :, :] limit
) except -1

@cython.locals(bound=double[::1])
cpdef object hop_bounds(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] tps,
    const double[:] cost_s,
    double far_s,
    const int64_t[:] place,
    const int64_t[:] node_of,
)

@cython.locals(cores=double[::1])
cpdef object hop_cores(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] tps,
    const double[:] scale,
    const double[:] cost_s,
    const int64_t[:] place,
    const int64_t[:] node_of,
)

@cython.locals(
    used=double[::1],
    sent=double[::1],
    got=double[::1],
    said=double,
    crossing=double,
    leaving=double,
    total=double,
    fullest=double,
    is_sized=bint,
)
cpdef tuple load(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] size_bytes,
    const float[:] tps,
    const float[:] cores,
    const double[:] cost_s,
    const int64_t[:] place,
    const int64_t[:] recorded,
    const int64_t[:] node_of,
    Py_ssize_t nodes,
)
