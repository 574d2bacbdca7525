//! Sends and receives at whose completion a handler runs, and `masktrap`.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{self, Answer, EQHND, EQNOACT, EQTYPE, Fault, check, fault};
use crate::forms::{c_forms, fortran_forms};
use crate::handlers::{
    self, CHandler, Due, ExtendedCHandler, ExtendedFortranHandler, FortranHandler, Handler, Told,
};
use crate::inbox;
use crate::life::enrolled;
use crate::receive::{Buffer, tag_and_channel};
use crate::rg;
use crate::send::{Message, others, send_to_all};
use crate::state::{To, library, or_successor};
use crate::types::{self, TypeSelect};

/// The handler of a started operation, and the description of the message if it is a send.
#[derive(Clone, Copy)]
struct Expected {
    handler: Handler,
    sent: Option<[c_long; 4]>,
}

impl Expected {
    /// Queues the handler: it is due.
    fn put(self, status: &rg::Status) {
        let handler = self.handler;
        let told = self.sent.map_or(Told::Came(*status), Told::Sent);
        handlers::put(Due { handler, told });
    }

    /// Registers the handler for the completion of a request.
    fn at_the_end(self, request: &mut rg::Request) -> Result<(), Fault> {
        let argument = Box::into_raw(Box::new(self));
        // SAFETY: `over` takes ownership of the box, and is called once.
        let code = unsafe { rg::rg_on_complete(request, Some(over), argument.cast()) };
        if code != rg::OK {
            // SAFETY: the request was not registered, so the box is still owned here.
            drop(unsafe { Box::from_raw(argument) });
            return Err(fault(code));
        }
        // The request may be complete already: then only progress reports it.
        // SAFETY: the call takes plain values only.
        check(unsafe { rg::rg_progress() })
    }
}

/// Queues the handler of a complete operation. Called by Regatta, in either thread.
unsafe extern "C" fn over(status: *const rg::Status, argument: *mut c_void) {
    // SAFETY: `at_the_end` has made the box; Regatta passes a valid status.
    let (expected, status) = unsafe { (Box::from_raw(argument.cast::<Expected>()), &*status) };
    match status.error {
        rg::OK => expected.put(status),
        // A receive from a node that is gone: no message will come, and the program does not wait for it.
        rg::ERR_LEFT | rg::ERR_DEAD if expected.sent.is_none() => handlers::take_back(),
        // The program is about to end.
        rg::ERR_STATE => {}
        rg::ERR_TRUNCATED => {
            let buffer = Buffer {
                memory: std::ptr::null_mut(),
                capacity: 0,
            };
            error::end("hrecv", buffer.too_short(status.length))
        }
        code => error::end("a handler's message", fault(code)),
    }
}

/// Announces a handler, and takes that back if the operation fails to start.
fn promised<T>(begun: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    handlers::promise()?;
    begun().inspect_err(|_| handlers::take_back())
}

fn receive(
    select: TypeSelect,
    source: c_int,
    buffer: Buffer,
    handler: Handler,
) -> Result<(), Fault> {
    let expected = Expected {
        handler,
        sent: None,
    };
    promised(|| {
        if library().inbox.concerns(select)
            && let Some(status) = inbox::receive_now(select, source, buffer)?
        {
            expected.put(&status);
            return Ok(());
        }
        let begun = start_receive(select, source, buffer)
            .or_else(|why| or_successor(source, why, |next| start_receive(select, next, buffer)));
        match begun {
            Ok(mut request) => expected.at_the_end(&mut request),
            // The same as if the node had gone later.
            Err(why) if why.code == EQNOACT => {
                handlers::take_back();
                Ok(())
            }
            Err(why) => Err(why),
        }
    })
}

fn start_receive(select: TypeSelect, source: c_int, buffer: Buffer) -> Result<rg::Request, Fault> {
    let (tag, channel) = tag_and_channel(select);
    let mut request = rg::REQUEST_NULL;
    // SAFETY: by the C contract the memory has this length, and stays valid until the handler runs.
    check(unsafe {
        rg::rg_irecv(
            buffer.memory,
            buffer.capacity,
            source,
            tag,
            channel,
            &mut request,
        )
    })?;
    Ok(request)
}

fn send(message: Message, to: To, told: [c_long; 4], handler: Handler) -> Result<(), Fault> {
    let expected = Expected {
        handler,
        sent: Some(told),
    };
    promised(|| match to {
        To::Task(task) => {
            let mut request = message.start(task)?;
            expected.at_the_end(&mut request)
        }
        To::Others(ptype) => {
            send_to_all(others(library(), ptype)?, message)?;
            let told = Told::Sent(told);
            handlers::put(Due { handler, told });
            Ok(())
        }
    })
}

/// Converts the type selector of a receive with a handler. Masks are refused: they cannot be matched while the program
/// is outside calls.
fn select(selector: c_long) -> Result<TypeSelect, Fault> {
    match types::select(selector)? {
        TypeSelect::Classes(_) => Err(Fault::of(EQTYPE, "type selector", selector)),
        select => Ok(select),
    }
}

fn handler<T>(function: Option<T>, handler: impl FnOnce(T) -> Handler) -> Result<Handler, Fault> {
    function.map(handler).ok_or(Fault::plain(EQHND))
}

fn begin_receive(
    (selector, nodesel, ptypesel): (c_long, c_long, c_long),
    memory: *mut c_void,
    count: c_long,
    handler: Handler,
) -> Answer {
    let source = enrolled()?.source(nodesel, ptypesel)?;
    let (select, buffer) = (select(selector)?, Buffer::new(memory, count)?);
    receive(select, source, buffer, handler)?;
    Ok(0)
}

fn begin_send(
    kind: c_long,
    memory: *const c_void,
    count: c_long,
    (node, ptype): (c_long, c_long),
    handler: Handler,
) -> Answer {
    let to = enrolled()?.destination(node, ptype)?;
    let message = Message::new(kind, memory, count)?;
    send(message, to, [kind, count, node, ptype], handler)?;
    Ok(0)
}

unsafe extern "C" fn nothing(_: *const rg::Status, _: *mut c_void) {}

/// Starts a send and a receive; the handler gets the description of the received message.
fn begin_exchange(
    (kind, from, length): (c_long, *const c_void, c_long),
    (node, ptype): (c_long, c_long),
    (selector, memory, count): (c_long, *mut c_void, c_long),
    handler: Handler,
) -> Answer {
    let to = enrolled()?.destination(node, ptype)?;
    let message = Message::new(kind, from, length)?;
    let (select, buffer) = (select(selector)?, Buffer::new(memory, count)?);
    // Start the send first: if it fails, nothing is received.
    match to {
        To::Task(task) => {
            let mut request = message.start(task)?;
            // SAFETY: `nothing` ignores its arguments.
            check(unsafe {
                rg::rg_on_complete(&mut request, Some(nothing), std::ptr::null_mut())
            })?;
        }
        To::Others(ptype) => send_to_all(others(library(), ptype)?, message)?,
    }
    receive(select, rg::ANY, buffer, handler)?;
    Ok(0)
}

/// Defines the calls for a type of handler, and for the one with an extra argument of the program.
macro_rules! calls {
    ($receive:ident $send:ident $exchange:ident $receive_x:ident $send_x:ident:
     $function:ty => $made:expr, $extended:ty, $own:ty => $made_x:expr) => {
        unsafe fn $receive(
            selector: c_long,
            memory: *mut c_void,
            count: c_long,
            function: Option<$function>,
        ) -> Answer {
            begin_receive((selector, -1, -1), memory, count, handler(function, $made)?)
        }

        unsafe fn $send(
            kind: c_long,
            memory: *const c_void,
            count: c_long,
            node: c_long,
            ptype: c_long,
            function: Option<$function>,
        ) -> Answer {
            begin_send(
                kind,
                memory,
                count,
                (node, ptype),
                handler(function, $made)?,
            )
        }

        #[allow(clippy::too_many_arguments)]
        unsafe fn $exchange(
            kind: c_long,
            from: *const c_void,
            length: c_long,
            node: c_long,
            ptype: c_long,
            selector: c_long,
            memory: *mut c_void,
            count: c_long,
            function: Option<$function>,
        ) -> Answer {
            begin_exchange(
                (kind, from, length),
                (node, ptype),
                (selector, memory, count),
                handler(function, $made)?,
            )
        }

        #[allow(clippy::too_many_arguments)]
        unsafe fn $receive_x(
            selector: c_long,
            memory: *mut c_void,
            count: c_long,
            nodesel: c_long,
            ptypesel: c_long,
            function: Option<$extended>,
            own: c_long,
        ) -> Answer {
            let handler = handler(function, |function| $made_x(function, own as $own))?;
            begin_receive((selector, nodesel, ptypesel), memory, count, handler)
        }

        #[allow(clippy::too_many_arguments)]
        unsafe fn $send_x(
            kind: c_long,
            memory: *const c_void,
            count: c_long,
            node: c_long,
            ptype: c_long,
            function: Option<$extended>,
            own: c_long,
        ) -> Answer {
            let handler = handler(function, |function| $made_x(function, own as $own))?;
            begin_send(kind, memory, count, (node, ptype), handler)
        }
    };
}

calls! {
    receive_c send_c exchange_c receive_x_c send_x_c:
    CHandler => Handler::C, ExtendedCHandler, c_long => Handler::ExtendedC
}

calls! {
    receive_fortran send_fortran exchange_fortran receive_x_fortran send_x_fortran:
    FortranHandler => Handler::Fortran, ExtendedFortranHandler, c_int => Handler::ExtendedFortran
}

/// Masks handlers unless `state` is 0. Returns the previous state as 0 or 1.
unsafe fn mask(state: c_long) -> Answer {
    Ok(c_long::from(handlers::mask(state != 0)))
}

c_forms! {
    hrecv, _hrecv: (selector: c_long, memory: *mut c_void, count: c_long, function: Option<CHandler>) = receive_c;
    hsend, _hsend: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long, function: Option<CHandler>) = send_c;
    hsendrecv, _hsendrecv: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long, function: Option<CHandler>) = exchange_c;
    hrecvx, _hrecvx: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, function: Option<ExtendedCHandler>, own: c_long) = receive_x_c;
    hsendx, _hsendx: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long, function: Option<ExtendedCHandler>, own: c_long) = send_x_c;
    masktrap, _masktrap: (state: c_long) = mask;
}

fortran_forms! {
    hrecv_, _hrecv_: (selector: c_long, memory: *mut c_void, count: c_long, function: Option<FortranHandler>) = receive_fortran;
    hsend_, _hsend_: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long, function: Option<FortranHandler>) = send_fortran;
    hsendrecv_, _hsendrecv_: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long, function: Option<FortranHandler>) = exchange_fortran;
    hrecvx_, _hrecvx_: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, function: Option<ExtendedFortranHandler>, own: c_long) = receive_x_fortran;
    hsendx_, _hsendx_: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long, function: Option<ExtendedFortranHandler>, own: c_long) = send_x_fortran;
    masktrap_, _masktrap_: (state: c_long) = mask;
}
