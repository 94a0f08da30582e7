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

/// The decoding loop, for both alphabets.
enum Base64Decoder {
    /// Returns `text` without its padding. Its length must fit that of the text.
    static func withoutPadding(_ text: UnsafeRawBufferPointer) throws(Base64.Failure) -> UnsafeRawBufferPointer {
        guard text.count.isMultiple(of: 4) else { throw .invalidLength }
        let padding = UInt8(ascii: "=")
        guard let last = text.last, last == padding else { return text }
        let isDouble = text[text.count - 2] == padding
        return UnsafeRawBufferPointer(rebasing: text.dropLast(isDouble ? 2 : 1))
    }

    /// Returns the number of bytes that `count` characters without padding encode.
    static func decodedCount(_ count: Int) throws(Base64.Failure) -> Int {
        guard count % 4 != 1 else { throw .invalidLength }
        return count / 4 * 3 + max(count % 4 - 1, 0)
    }

    /// Decodes `text`, which has no padding, into exactly ``decodedCount(_:)`` bytes.
    static func decode(
        _ text: UnsafeRawBufferPointer, into bytes: UnsafeMutableRawBufferPointer, _ alphabet: Base64Alphabet
    ) throws(Base64.Failure) {
        guard let source = text.baseAddress, let target = bytes.baseAddress, !text.isEmpty else { return }
        precondition(bytes.count == text.count / 4 * 3 + max(text.count % 4 - 1, 0), "the bytes do not fit")
        let fullGroups = text.count / 4
        try alphabet.values.withUnsafeBufferPointer { values throws(Base64.Failure) in
            guard let table = values.baseAddress else { return }
            // Every index is a byte plus a multiple of 256 below 1024, the size of the table. Invalid characters set
            // the top byte. One check at the end keeps the loop free of branches.
            var seen: UInt32 = 0
            for group in 0..<fullGroups {
                let input = source + group * 4
                let bits =
                    table[Int(input.load(as: UInt8.self))]
                    | table[256 + Int(input.load(fromByteOffset: 1, as: UInt8.self))]
                    | table[512 + Int(input.load(fromByteOffset: 2, as: UInt8.self))]
                    | table[768 + Int(input.load(fromByteOffset: 3, as: UInt8.self))]
                seen |= bits
                let output = target + group * 3
                output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> 16), as: UInt8.self)
                output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> 8), toByteOffset: 1, as: UInt8.self)
                output.storeBytes(of: UInt8(truncatingIfNeeded: bits), toByteOffset: 2, as: UInt8.self)
            }
            guard seen < Base64Alphabet.invalid else { throw .invalidCharacter }
            try decodeRest(text, fullGroups, into: target + fullGroups * 3, table)
        }
    }

    /// Decodes the last two or three characters.
    private static func decodeRest(
        _ text: UnsafeRawBufferPointer, _ fullGroups: Int, into output: UnsafeMutableRawPointer,
        _ table: UnsafePointer<UInt32>
    ) throws(Base64.Failure) {
        let rest = text.count - fullGroups * 4
        guard rest > 0 else { return }
        let start = fullGroups * 4
        var bits = table[Int(text[start])] | table[256 + Int(text[start + 1])]
        if rest == 3 { bits |= table[512 + Int(text[start + 2])] }
        guard bits < Base64Alphabet.invalid else { throw .invalidCharacter }
        let unusedBits: UInt32 = rest == 2 ? 0xFFFF : 0xFF
        guard bits & unusedBits == 0 else { throw .nonZeroTrailingBits }
        output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> 16), as: UInt8.self)
        if rest == 3 { output.storeBytes(of: UInt8(truncatingIfNeeded: bits >> 8), toByteOffset: 1, as: UInt8.self) }
    }
}

extension [UInt8] {
    /// Creates an array of `decodedCount` bytes that `decode` fills.
    init(
        decodedCount count: Int,
        filledBy decode: (UnsafeMutableRawBufferPointer) throws(Base64.Failure) -> Void
    ) throws(Base64.Failure) {
        var failure: Base64.Failure?
        self.init(unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(Base64.Failure) {
                // The capacity may exceed the requested one.
                try decode(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]))
                initialized = count
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }
}

/// The lookup tables of one base64 alphabet.
struct Base64Alphabet: Sendable {
    /// RFC 4648 section 4, padded.
    static let standard = Base64Alphabet(last: "+/", isPadded: true)
    /// RFC 4648 section 5, not padded.
    static let url = Base64Alphabet(last: "-_", isPadded: false)

    /// Marks characters outside the alphabet: a value that no 24 bits of output can have.
    static let invalid: UInt32 = 0xFF00_0000

    let isPadded: Bool
    /// The two characters of each 12 bits of input, in memory order.
    let pairs: [UInt16]
    /// Four tables of 256: the contribution of a character to 24 bits of output in each of the four positions.
    let values: [UInt32]

    private init(last: StaticString, isPadded: Bool) {
        var characters: [UInt8] = []
        characters.append(contentsOf: UInt8(ascii: "A")...UInt8(ascii: "Z"))
        characters.append(contentsOf: UInt8(ascii: "a")...UInt8(ascii: "z"))
        characters.append(contentsOf: UInt8(ascii: "0")...UInt8(ascii: "9"))
        last.withUTF8Buffer { characters.append(contentsOf: $0) }

        var pairs: [UInt16] = []
        pairs.reserveCapacity(4096)
        for first in characters {
            for second in characters {
                pairs.append(UInt16(littleEndian: UInt16(second) << 8 | UInt16(first)))
            }
        }

        var values = [UInt32](repeating: Self.invalid, count: 4 * 256)
        for (value, character) in characters.enumerated() {
            for position in 0..<4 {
                values[position * 256 + Int(character)] = UInt32(value) << (18 - 6 * UInt32(position))
            }
        }

        self.isPadded = isPadded
        self.pairs = pairs
        self.values = values
    }
}
