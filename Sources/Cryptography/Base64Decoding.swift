/// The state of decoding one text in steps, for texts that are too long to be decoded at once.
///
/// Accepts line breaks like ``Base64/decodeLineWrapped(_:)``. Every call needs the same text.
public struct Base64Decoding: Sendable {
    private var bytes: [UInt8]
    /// The characters of a line and the bytes of its break, or nil for a text in one piece.
    private let wrapping: (length: Int, lineBreak: Int)?
    /// The number of characters without a final line break.
    private let count: Int
    private var position = 0
    private var written = 0

    /// The line lengths of PEM (RFC 7468) and older Apple encoders, and of MIME (RFC 2045).
    private static let lineLengths = [64, 76]

    /// Detects the wrapping of a text, and allocates memory for the bytes that it encodes.
    public init(_ text: UnsafeRawBufferPointer) throws(Base64.Failure) {
        count = text.count - Self.finalBreak(text)
        let body = UnsafeRawBufferPointer(rebasing: text[..<count])
        wrapping =
            Self.lineLengths.lazy.compactMap { length in
                Self.lineBreak(body, at: length).map { (length: length, lineBreak: $0) }
            }.first
        guard let wrapping else {
            let last = try Base64Decoder.withoutPadding(body)
            bytes = [UInt8](repeating: 0, count: try Base64Decoder.decodedCount(last.count))
            return
        }
        let stride = wrapping.length + wrapping.lineBreak
        let fullLines = (count - 1) / stride
        let last = try Base64Decoder.withoutPadding(UnsafeRawBufferPointer(rebasing: body[(fullLines * stride)...]))
        // The text ends in a line: the one permitted final break is already removed.
        guard !last.isEmpty, last.count <= wrapping.length else { throw .invalidLineBreak }
        bytes = [UInt8](
            repeating: 0,
            count: try fullLines * wrapping.length / 4 * 3 + Base64Decoder.decodedCount(last.count))
    }

    /// Decodes about `characters` more characters.
    /// - Returns: True while characters remain.
    public mutating func advance(_ text: UnsafeRawBufferPointer, characters: Int) throws(Base64.Failure) -> Bool {
        precondition(count <= text.count, "the text must be that of the first call")
        let (end, overflow) = position.addingReportingOverflow(max(characters, 4))
        if let wrapping {
            try decodeLines(text, upTo: overflow ? count : min(end, count), wrapping.length, wrapping.lineBreak)
        } else {
            try decodePiece(text, upTo: overflow || end >= count ? count : end & ~3)
        }
        return position < count
    }

    /// Returns the decoded bytes.
    public consuming func finish() -> [UInt8] {
        precondition(position == count, "the text must be decoded to its end")
        return bytes
    }

    private mutating func decodePiece(_ text: UnsafeRawBufferPointer, upTo end: Int) throws(Base64.Failure) {
        try decode(UnsafeRawBufferPointer(rebasing: text[position..<end]), isLast: end == count)
        position = end
    }

    private mutating func decodeLines(
        _ text: UnsafeRawBufferPointer, upTo end: Int, _ length: Int, _ lineBreak: Int
    ) throws(Base64.Failure) {
        while position < end {
            let lineEnd = min(position + length, count)
            try decode(UnsafeRawBufferPointer(rebasing: text[position..<lineEnd]), isLast: lineEnd == count)
            if lineEnd < count {
                guard Self.lineBreak(text, at: lineEnd) == lineBreak else { throw .invalidLineBreak }
                position = lineEnd + lineBreak
            } else {
                position = count
            }
        }
    }

    /// Decodes a part of the text. Only the last part may have padding, and a length that is no multiple of four.
    private mutating func decode(_ part: UnsafeRawBufferPointer, isLast: Bool) throws(Base64.Failure) {
        let part = isLast ? try Base64Decoder.withoutPadding(part) : part
        let byteCount = try Base64Decoder.decodedCount(part.count)
        let start = written
        try bytes.withUnsafeMutableBufferPointer { bytes throws(Base64.Failure) in
            let target = UnsafeMutableBufferPointer(rebasing: bytes[start..<start + byteCount])
            try Base64Decoder.decode(part, into: UnsafeMutableRawBufferPointer(target), .standard)
        }
        written += byteCount
    }

    /// Returns the length of the line break (CR LF or LF) at `offset`, or nil if there is none.
    private static func lineBreak(_ text: UnsafeRawBufferPointer, at offset: Int) -> Int? {
        // An optimised build checks no bounds of a raw buffer, so this is checked here.
        guard offset < text.count else { return nil }
        if text[offset] == UInt8(ascii: "\n") { return 1 }
        let isCRLF =
            offset + 1 < text.count && text[offset] == UInt8(ascii: "\r") && text[offset + 1] == UInt8(ascii: "\n")
        return isCRLF ? 2 : nil
    }

    /// Returns the length of the line break at the end of the text, or 0 without one or if the text has nothing else.
    private static func finalBreak(_ text: UnsafeRawBufferPointer) -> Int {
        if text.count > 2, lineBreak(text, at: text.count - 2) == 2 { return 2 }
        return text.count > 1 && lineBreak(text, at: text.count - 1) == 1 ? 1 : 0
    }
}
