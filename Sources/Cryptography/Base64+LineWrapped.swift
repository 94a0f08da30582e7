extension Base64 {
    private static let lineLength = 64
    private static let lineByteCount = 48
    private static let lineBreakLength = 2

    /// Like ``decode(_:)``, but CR LF may follow every 64 characters, as older Apple encoders write it, and may
    /// end the text.
    ///
    /// The text is wrapped everywhere or nowhere: a line that is longer or shorter (other than the last) is
    /// refused, and so is any other white space.
    public static func decodeLineWrapped(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            let body = withoutFinalLineBreak(text)
            guard isWrapped(body) else { return try decode(body) }
            return try decodeLines(body)
        }
    }

    private static func withoutFinalLineBreak(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard text.count > lineBreakLength, isLineBreak(text, at: text.count - lineBreakLength) else { return text }
        return UnsafeRawBufferPointer(rebasing: text.dropLast(lineBreakLength))
    }

    private static func isWrapped(_ text: UnsafeRawBufferPointer) -> Bool {
        text.count > lineLength && isLineBreak(text, at: lineLength)
    }

    private static func isLineBreak(_ text: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        // The bound is ours to check: an optimised build does not check it for a raw buffer.
        offset + 1 < text.count && text[offset] == UInt8(ascii: "\r") && text[offset + 1] == UInt8(ascii: "\n")
    }

    private static func decodeLines(_ text: UnsafeRawBufferPointer) throws(Failure) -> [UInt8] {
        let stride = lineLength + lineBreakLength
        let fullLines = (text.count - 1) / stride
        let last = try Base64Decoder.withoutPadding(UnsafeRawBufferPointer(rebasing: text[(fullLines * stride)...]))
        // The text ends in a line, not in a break: the final one was taken off, and only one may be there.
        guard !last.isEmpty, last.count <= lineLength else { throw .invalidLineBreak }
        let lastByteCount = try Base64Decoder.decodedCount(last.count)
        return try [UInt8](decodedCount: fullLines * lineByteCount + lastByteCount) { bytes throws(Failure) in
            for line in 0..<fullLines {
                let start = line * stride
                guard isLineBreak(text, at: start + lineLength) else { throw .invalidLineBreak }
                try Base64Decoder.decode(
                    UnsafeRawBufferPointer(rebasing: text[start..<start + lineLength]),
                    into: UnsafeMutableRawBufferPointer(
                        rebasing: bytes[line * lineByteCount..<(line + 1) * lineByteCount]),
                    .standard)
            }
            try Base64Decoder.decode(
                last, into: UnsafeMutableRawBufferPointer(rebasing: bytes[(fullLines * lineByteCount)...]), .standard)
        }
    }
}
