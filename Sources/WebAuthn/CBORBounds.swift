/// Checks the bounds of a CBOR item (RFC 8949) before libcbor allocates memory for it.
///
/// WebAuthn uses the CTAP2 form of CBOR: lengths are definite, and there are no tags. A length never exceeds the rest
/// of the input, so the memory of the decoded item is proportional to its bytes.
struct CBORBounds {
    /// The greatest nesting depth of arrays and maps.
    static let depthLimit = 8
    /// The most items, at any depth.
    static let itemLimit = 256

    private let bytes: ArraySlice<UInt8>
    private var position: Int
    private var items = 0

    private init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Returns the first item of `bytes`. Other items may follow it.
    static func firstItem(of bytes: ArraySlice<UInt8>) throws(WebAuthnFailure) -> ArraySlice<UInt8> {
        var bounds = CBORBounds(bytes)
        try bounds.skipItem(depth: 0)
        return bytes[..<bounds.position]
    }

    private mutating func skipItem(depth: Int) throws(WebAuthnFailure) {
        items += 1
        if items > Self.itemLimit { throw .tooManyItems }
        let (major, argument) = try head()
        switch major {
        case 0, 1: break
        case 2, 3: try skip(argument)
        case 4: try skipItems(argument, depth: depth + 1)
        case 5:
            if argument > UInt64(bytes.count) { throw .malformedCBOR }
            try skipItems(argument * 2, depth: depth + 1)
        case 6: throw .tagged
        default: break
        }
    }

    /// Reads the initial byte and its argument (RFC 8949 §3). Skips the bytes of a number of major type 7.
    private mutating func head() throws(WebAuthnFailure) -> (major: UInt8, argument: UInt64) {
        guard position < bytes.endIndex else { throw .malformedCBOR }
        let first = bytes[position]
        position += 1
        let (major, low) = (first >> 5, first & 31)
        switch low {
        case 0..<24: return (major, UInt64(low))
        case 24...27:
            let count = 1 << Int(low - 24)
            guard count <= bytes.endIndex - position else { throw .malformedCBOR }
            var argument: UInt64 = 0
            for byte in bytes[position..<position + count] { argument = argument << 8 | UInt64(byte) }
            position += count
            // A simple value below 32 has one form, without another byte (RFC 8949 §3.3).
            if major == 7, low == 24, argument < 32 { throw .malformedCBOR }
            return (major, argument)
        case 31: throw (2...5).contains(major) ? .indefiniteLength : .malformedCBOR
        default: throw .malformedCBOR
        }
    }

    private mutating func skip(_ count: UInt64) throws(WebAuthnFailure) {
        guard count <= UInt64(bytes.endIndex - position) else { throw .malformedCBOR }
        position += Int(count)
    }

    private mutating func skipItems(_ count: UInt64, depth: Int) throws(WebAuthnFailure) {
        // Each item has at least one byte.
        guard count <= UInt64(bytes.endIndex - position) else { throw .malformedCBOR }
        if depth > Self.depthLimit { throw .tooDeep }
        for _ in 0..<count { try skipItem(depth: depth) }
    }
}
