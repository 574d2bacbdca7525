//! Regatta's connections, as its daemons use them: the handshake and the records of those between tasks.

use std::io;

use regatta_connection::calls::{Call, CallListener, Conversation, Greeting, Keys};

use crate::KEY;
use crate::wire::{Contestant, Wire, listen, other, spin};

struct Ours(Conversation);

impl Wire for Ours {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = spin(|| Ok(Some(self.0.send(bytes)?).filter(|&n| n > 0)))?;
            bytes = &bytes[n..];
        }
        spin(|| {
            self.0.flush()?;
            Ok(self.0.is_flushed().then_some(()))
        })
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            done += spin(|| self.0.recv(&mut into[done..]))?;
        }
        Ok(())
    }
}

pub fn contestant() -> io::Result<Contestant> {
    let (listener, address) = listen()?;
    let mut listener = CallListener::new(listener.into())?;
    let keys = Keys::new(&KEY);
    let accept = move || -> io::Result<Box<dyn Wire>> {
        let met = spin(|| Ok(listener.attend(&keys).pop()))?;
        Ok(Box::new(Ours(met)))
    };
    let keys = Keys::new(&KEY);
    let call = move || -> io::Result<Box<dyn Wire>> {
        let mut under = Some(Call::to(address)?);
        let met = spin(|| match under.take().map(|call| call.advance(&keys)) {
            Some(Greeting::Pending(call)) => {
                under = Some(call);
                Ok(None)
            }
            Some(Greeting::Met(conversation)) => Ok(Some(conversation)),
            end => Err(other(end)),
        })?;
        Ok(Box::new(Ours(met)))
    };
    Ok(Contestant {
        name: "ours",
        call: Box::new(call),
        accept: Box::new(accept),
    })
}
