//! Messages in XDR that the library itself writes.

/// The bytes of a message in XDR, in the making.
#[derive(Default, Clone, Debug)]
pub struct Body(Vec<u8>);

impl Body {
    /// Without anything yet.
    pub fn new() -> Body {
        Body::default()
    }

    /// As `pvm_pkint` packs one.
    pub fn int(mut self, value: i32) -> Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// As `pvm_pkint` packs several.
    pub fn ints(mut self, values: &[i32]) -> Body {
        for value in values {
            self.0.extend_from_slice(&value.to_be_bytes());
        }
        self
    }

    /// As `pvm_pkbyte` packs them.
    pub fn bytes(mut self, bytes: &[u8]) -> Body {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// A string, as `pvm_pkstr` packs it.
    pub fn string(self, text: impl AsRef<[u8]>) -> Body {
        let text = text.as_ref();
        let mut body = self.int(text.len() as i32 + 1);
        body.0.extend_from_slice(text);
        body.0.push(0);
        body.0.resize(body.0.len().next_multiple_of(4), 0);
        body
    }

    /// The bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}
