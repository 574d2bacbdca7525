//! Collectives on contiguous memory.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use regatta_sys as rg;

use crate::element::{Element, Kind};
use crate::error::raised;
use crate::groups::Group;
use crate::memory::{Access, Memory};
use crate::waiting::blocking;

// Signatures have the operators' numbers, which help() shows; 1 is SUM.

/// Input pointer of a collective that takes its input from the output.
const IN_PLACE: *const c_void = rg::IN_PLACE as *const c_void;

/// Runs a collective. If a signal ends it, revokes the group, so that the other members do not wait for this one.
#[inline(always)]
pub(crate) fn collect(
    py: Python<'_>,
    group: rg::Group,
    call: impl FnOnce() -> c_int,
) -> PyResult<()> {
    match blocking(py, call) {
        rg::OK => Ok(()),
        code => {
            let error = raised(py, code);
            if code == rg::ERR_CANCELLED {
                // The result does not matter here.
                // SAFETY: the function checks the handle.
                blocking(py, || unsafe { rg::rg_group_revoke(group) });
            }
            Err(error)
        }
    }
}

/// Returns a function of numpy.
fn numpy<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = NUMPY.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("numpy")?.into_any().unbind())
    });
    module?.bind(py).getattr(name)
}

/// Converts an object to a contiguous numpy array. Copies only if it is not contiguous.
fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    // SAFETY: `object` is valid.
    let has_buffers = unsafe { pyo3::ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    let object = match !has_buffers && object.hasattr("__dlpack__")? {
        true => numpy(py, "from_dlpack")?.call1((object,))?,
        false => object.clone(),
    };
    // ascontiguousarray would make an array of one dimension from one of none.
    let kwargs = pyo3::types::PyDict::new(py);
    kwargs.set_item("order", "C")?;
    numpy(py, "asarray")?.call((object,), Some(&kwargs))
}

/// Makes an uninitialized array of another array's type, with this shape.
fn empty<'py>(like: &Bound<'py, PyAny>, shape: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    numpy(like.py(), "empty")?.call1((shape, like.getattr("dtype")?))
}

/// Returns the input and the output of a collective. The output is `out`, or a new array whose shape follows from the input.
fn with_output<'py>(
    input: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    shape: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Some(output) = out {
        return Ok((input.clone(), output));
    }
    let given = array(input)?;
    let output = empty(&given, shape(&given)?)?;
    Ok((given, output))
}

fn shape<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    Ok(array.getattr("shape")?.cast_into::<PyTuple>()?)
}

/// Returns an array's shape with an axis of `size` ranks before it.
fn stacked<'py>(array: &Bound<'py, PyAny>, size: usize) -> PyResult<Bound<'py, PyTuple>> {
    let shape = shape(array)?;
    let first = size.into_pyobject(array.py())?.into_any();
    let axes: Vec<Bound<'py, PyAny>> = std::iter::once(first).chain(shape.iter()).collect();
    PyTuple::new(array.py(), axes)
}

/// Returns an array's shape without its first axis. Fails unless that axis has an index for each rank.
fn unstacked<'py>(array: &Bound<'py, PyAny>, size: usize) -> PyResult<Bound<'py, PyTuple>> {
    let shape = shape(array)?;
    let first = shape.get_item(0).and_then(|first| first.extract::<usize>());
    match first {
        Ok(first) if first == size => Ok(shape.get_slice(1, shape.len())),
        _ => Err(PyValueError::new_err(format!(
            "the first axis of the array must have the length {size}, the number of members, but its shape is {}; reshape it, or pass an output",
            shape.repr()?
        ))),
    }
}

fn same_length(input: &Memory, output: &Memory, times: usize, what: &str) -> PyResult<()> {
    match input.len().checked_mul(times) == Some(output.len()) {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "the input has {} bytes and the output has {}: {what}",
            input.len(),
            output.len()
        ))),
    }
}

/// The arguments of a reduction.
struct Reduction {
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    kind: c_int,
    op: rg::Op,
}

impl Reduction {
    /// Makes the arguments of a reduction. The input has `parts` times the length of the output.
    fn of(input: &Memory, output: &Memory, op: c_int, parts: usize) -> PyResult<Reduction> {
        let element = input.element();
        if element != output.element() {
            return Err(PyValueError::new_err(
                "input and output have different types of elements; make the output of the input's dtype",
            ));
        }
        let (from, to) = (input.contiguous()?, output.contiguous()?);
        let (kind, op, pairs) = element.reduced(op)?;
        Ok(Reduction {
            input: if from == to { IN_PLACE } else { from },
            output: to,
            count: input.len() / parts / element.size.max(1) * pairs,
            kind,
            op: rg::Op { id: op },
        })
    }
}

type Reduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, rg::Op, rg::Group) -> c_int;

impl Group {
    fn members(&self, py: Python<'_>) -> PyResult<usize> {
        // SAFETY: the function checks the handle.
        crate::error::check(py, unsafe { rg::rg_size(self.handle()) }).map(|size| size as usize)
    }

    /// Runs a reduction whose result every member gets.
    fn reduce_for_all<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        op: c_int,
        output: Option<Bound<'py, PyAny>>,
        call: Reduce,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group) = (input.py(), self.handle());
        let (given, output) = match output {
            Some(output) => (None, output),
            None if input.is_instance_of::<PyInt>() || input.is_instance_of::<PyFloat>() => {
                return self.reduce_number(input, op, call);
            }
            None => {
                let given = array(input)?;
                let output = empty(&given, shape(&given)?)?;
                (Some(given), output)
            }
        };
        {
            let from = Memory::typed(given.as_ref().unwrap_or(input), Access::Read)?;
            let to = Memory::typed(&output, Access::Write)?;
            same_length(&from, &to, 1, "they must have the same length")?;
            let it = Reduction::of(&from, &to, op, 1)?;
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                call(it.input, it.output, it.count, it.kind, it.op, group)
            })?;
        }
        Ok(output)
    }

    /// Runs a reduction of a Python number.
    fn reduce_number<'py>(
        &self,
        number: &Bound<'py, PyAny>,
        op: c_int,
        call: Reduce,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group) = (number.py(), self.handle());
        let is_float = number.is_instance_of::<PyFloat>();
        let kind = if is_float { Kind::Float } else { Kind::Int };
        let (kind, op, _) = Element { kind, size: 8 }.reduced(op)?;
        let given = match is_float {
            true => number.extract::<f64>()?.to_bits(),
            false => number.extract::<i64>()?.cast_unsigned(),
        };
        let (mut result, op) = (0u64, rg::Op { id: op });
        let (from, to) = (
            std::ptr::from_ref(&given).cast(),
            std::ptr::from_mut(&mut result).cast(),
        );
        // SAFETY: both numbers are valid and have 8 bytes.
        collect(py, group, || unsafe { call(from, to, 1, kind, op, group) })?;
        match is_float {
            true => Ok(f64::from_bits(result).into_pyobject(py)?.into_any()),
            false => Ok(result.cast_signed().into_pyobject(py)?.into_any()),
        }
    }
}

#[pymethods]
impl Group {
    /// Blocks until all members have called it.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.handle();
        // SAFETY: the function checks the handle.
        collect(py, group, || unsafe { rg::rg_barrier(group) })
    }

    /// Copies the root's contiguous memory to that of all members, which has the same length in bytes. Returns the buffer. Blocks.
    #[pyo3(signature = (buffer, root = 0))]
    fn bcast<'py>(&self, buffer: Bound<'py, PyAny>, root: c_int) -> PyResult<Bound<'py, PyAny>> {
        let (py, group) = (buffer.py(), self.handle());
        // SAFETY: the function checks the handle.
        let access = match unsafe { rg::rg_rank(group) } == root {
            true => Access::Read,
            false => Access::Write,
        };
        {
            let memory = Memory::of(&buffer, access)?;
            let (block, len) = (memory.contiguous()?, memory.len());
            // SAFETY: the memory is borrowed until the call returns. The root's is only read.
            collect(py, group, || unsafe {
                rg::rg_broadcast(block, len, root, group)
            })?;
        }
        Ok(buffer)
    }

    /// Combines arrays of one shape element by element, and returns the result to all members. Blocks.
    ///
    /// input: an array or a number.
    /// op: SUM, PRODUCT, MAX, MIN, AND, OR, XOR (logical), BAND, BOR or BXOR (bitwise).
    /// out: an array for the result, which may be the input. None makes a new one.
    /// If a member dies, every member that cannot finish gets TaskDied with the id of the dead task.
    #[pyo3(signature = (input, op = 1, out = None))]
    fn allreduce<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        op: c_int,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_for_all(input, op, out, rg::rg_allreduce)
    }

    /// Like allreduce, over the ranks up to this one: rank r gets the combination of ranks 0 to r. Blocks.
    #[pyo3(signature = (input, op = 1, out = None))]
    fn scan<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        op: c_int,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reduce_for_all(input, op, out, rg::rg_scan)
    }

    /// Like allreduce, with the result at the root only. Returns None at the other members. Blocks.
    #[pyo3(signature = (input, op = 1, root = 0, out = None))]
    fn reduce<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        op: c_int,
        root: c_int,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, group) = (input.py(), self.handle());
        // SAFETY: the function checks the handle.
        let is_root = unsafe { rg::rg_rank(group) } == root;
        let given = match out {
            Some(_) => input.clone(),
            None => array(input)?,
        };
        let output = match (is_root, out) {
            (false, _) => None,
            (true, Some(output)) => Some(output),
            (true, None) => Some(empty(&given, shape(&given)?)?),
        };
        {
            let from = Memory::typed(&given, Access::Read)?;
            let to = output
                .as_ref()
                .map(|output| Memory::typed(output, Access::Write));
            let to = to.transpose()?;
            if let Some(to) = &to {
                same_length(&from, to, 1, "they must have the same length")?;
            }
            let mut it = Reduction::of(&from, to.as_ref().unwrap_or(&from), op, 1)?;
            if !is_root {
                it.input = from.contiguous()?;
                it.output = std::ptr::null_mut();
            }
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_reduce(it.input, it.output, it.count, it.kind, it.op, root, group)
            })?;
        }
        Ok(output)
    }

    /// Combines arrays of shape (size, ...), and returns to each member the part with its rank as index, of shape (...). Blocks.
    ///
    /// With out, only the numbers of bytes have to fit, and not the shapes.
    #[pyo3(signature = (input, op = 1, out = None))]
    fn reduce_scatter<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        op: c_int,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group, size) = (input.py(), self.handle(), self.members(input.py())?);
        let (given, output) = with_output(input, out, |given| unstacked(given, size))?;
        {
            let from = Memory::typed(&given, Access::Read)?;
            let to = Memory::typed(&output, Access::Write)?;
            same_length(
                &to,
                &from,
                size,
                "the input must have the output's length for each member",
            )?;
            let it = Reduction::of(&from, &to, op, size)?;
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_reduce_scatter_block(it.input, it.output, it.count, it.kind, it.op, group)
            })?;
        }
        Ok(output)
    }

    /// Returns an array of shape (size, ...) with the arrays of all members, of shape (...), by rank. Blocks.
    #[pyo3(signature = (input, out = None))]
    fn allgather<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group, size) = (input.py(), self.handle(), self.members(input.py())?);
        let (given, output) = with_output(input, out, |given| stacked(given, size))?;
        {
            let from = Memory::of(&given, Access::Read)?;
            let to = Memory::of(&output, Access::Write)?;
            same_length(
                &from,
                &to,
                size,
                "the output must have the input's length for each member",
            )?;
            let (input, len, output) = (from.contiguous()?, from.len(), to.contiguous()?);
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_allgather(input, len, output, group)
            })?;
        }
        Ok(output)
    }

    /// Like allgather, with the result at the root only. Returns None at the other members. Blocks.
    #[pyo3(signature = (input, root = 0, out = None))]
    fn gather<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        root: c_int,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, group, size) = (input.py(), self.handle(), self.members(input.py())?);
        // SAFETY: the function checks the handle.
        let is_root = unsafe { rg::rg_rank(group) } == root;
        let given = match out {
            Some(_) => input.clone(),
            None => array(input)?,
        };
        let output = match (is_root, out) {
            (false, _) => None,
            (true, Some(output)) => Some(output),
            (true, None) => Some(empty(&given, stacked(&given, size)?)?),
        };
        {
            let from = Memory::of(&given, Access::Read)?;
            let to = output
                .as_ref()
                .map(|output| Memory::of(output, Access::Write));
            let to = to.transpose()?;
            let place = match &to {
                Some(to) => {
                    same_length(
                        &from,
                        to,
                        size,
                        "the output must have the input's length for each member",
                    )?;
                    to.contiguous()?
                }
                None => std::ptr::null_mut(),
            };
            let (input, len) = (from.contiguous()?, from.len());
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_gather(input, len, place, root, group)
            })?;
        }
        Ok(output)
    }

    /// Scatters into existing memory, which the package makes if the caller passes none. Blocks.
    #[pyo3(signature = (input, out, root = 0))]
    fn scatter_into<'py>(
        &self,
        input: Option<Bound<'py, PyAny>>,
        out: Bound<'py, PyAny>,
        root: c_int,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group, size) = (out.py(), self.handle(), self.members(out.py())?);
        // SAFETY: the function checks the handle.
        let is_root = unsafe { rg::rg_rank(group) } == root;
        {
            let to = Memory::of(&out, Access::Write)?;
            let from = match (is_root, &input) {
                (true, Some(input)) => Some(Memory::of(input, Access::Read)?),
                (true, None) => {
                    return Err(PyValueError::new_err("the root must pass an input"));
                }
                (false, _) => None,
            };
            let place = match &from {
                Some(from) => {
                    same_length(
                        &to,
                        from,
                        size,
                        "the input must have the output's length for each member",
                    )?;
                    from.contiguous()?
                }
                None => std::ptr::null_mut(),
            };
            let (output, len) = (to.contiguous()?, to.len());
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_scatter(place, output, len, root, group)
            })?;
        }
        Ok(out)
    }

    /// Sends `input[r]` to each rank r, and returns what each member has sent to this one, by rank. Both have shape (size, ...). Blocks.
    #[pyo3(signature = (input, out = None))]
    fn alltoall<'py>(
        &self,
        input: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, group, size) = (input.py(), self.handle(), self.members(input.py())?);
        let (given, output) = with_output(input, out, |given| {
            unstacked(given, size)?;
            shape(given)
        })?;
        {
            let from = Memory::of(&given, Access::Read)?;
            let to = Memory::of(&output, Access::Write)?;
            same_length(&from, &to, 1, "they must have the same length")?;
            if !from.len().is_multiple_of(size) {
                return Err(PyValueError::new_err(format!(
                    "{} bytes cannot be divided evenly among {size} members",
                    from.len()
                )));
            }
            let (input, len, output) = (from.contiguous()?, from.len() / size, to.contiguous()?);
            if input == output {
                return Err(PyValueError::new_err(
                    "a complete exchange needs an output of its own",
                ));
            }
            // SAFETY: the memory is borrowed until the call returns, and has the given lengths.
            collect(py, group, || unsafe {
                rg::rg_alltoall(input, len, output, group)
            })?;
        }
        Ok(output)
    }
}
