//! Encodes XDR messages of the library itself.

/// An XDR message under construction.
#[derive(Default, Clone, Debug)]
pub struct Body(Vec<u8>);

impl Body {
    /// Returns an empty message.
    pub fn new() -> Body {
        Body::default()
    }

    /// Appends an integer, as `pvm_pkint` does.
    pub fn int(mut self, value: i32) -> Body {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends integers, as `pvm_pkint` does.
    pub fn ints(mut self, values: &[i32]) -> Body {
        for value in values {
            self.0.extend_from_slice(&value.to_be_bytes());
        }
        self
    }

    /// Appends bytes, as `pvm_pkbyte` does.
    pub fn bytes(mut self, bytes: &[u8]) -> Body {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a string, as `pvm_pkstr` does.
    pub fn string(self, text: impl AsRef<[u8]>) -> Body {
        let text = text.as_ref();
        let mut body = self.int(text.len() as i32 + 1);
        body.0.extend_from_slice(text);
        body.0.push(0);
        body.0.resize(body.0.len().next_multiple_of(4), 0);
        body
    }

    /// Returns the bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}
