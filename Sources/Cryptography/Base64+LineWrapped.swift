extension Base64 {
    /// Like ``decode(_:)``, but CR LF or LF may follow every 64 characters, as older Apple encoders and PEM have it, or
    /// every 76, as MIME has it and the command `base64`, and may end the text.
    ///
    /// The text is wrapped everywhere or nowhere: a line that is longer or shorter (other than the last) is
    /// refused, and so is any other white space.
    public static func decodeLineWrapped(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            var decoding = try Base64Decoding(text)
            while try decoding.advance(text, characters: .max) {}
            return decoding.finish()
        }
    }
}
