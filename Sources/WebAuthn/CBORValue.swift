internal import CCBOR

/// A CBOR item, decoded by libcbor after ``CBORBounds`` has checked it.
enum CBORValue: Hashable {
    case unsigned(UInt64)
    /// -1 minus the number.
    case negative(UInt64)
    case bytes([UInt8])
    case text(String)
    case array([CBORValue])
    case map([CBORValue: CBORValue])
    case bool(Bool)
    /// Null, undefined, another simple value or a floating-point number. Extensions may contain them, and WebAuthn
    /// reads none.
    case other

    /// Decodes bytes that are exactly one item.
    init(decoding bytes: ArraySlice<UInt8>) throws(WebAuthnFailure) {
        let item = try CBORBounds.firstItem(of: bytes)
        guard item.endIndex == bytes.endIndex else { throw .trailingBytes }
        self = try CBORItem.decode(item).value()
    }

    /// Creates an integer of COSE: a label or an algorithm.
    static func integer(_ number: Int) -> CBORValue {
        number < 0 ? .negative(UInt64(-1 - number)) : .unsigned(UInt64(number))
    }

    /// The integer of this item. Nil for other items and for numbers that do not fit.
    var integer: Int? {
        switch self {
        case .unsigned(let number): Int(exactly: number)
        case .negative(let number): Int(exactly: number).map { -1 - $0 }
        default: nil
        }
    }
}

/// Owns an item of libcbor.
private struct CBORItem: ~Copyable {
    // Owned: libcbor frees the item and all items in it with the last reference, which is this one.
    private let pointer: UnsafeMutablePointer<cbor_item_t>

    private init(takingOwnershipOf pointer: UnsafeMutablePointer<cbor_item_t>) {
        self.pointer = pointer
    }

    static func decode(_ bytes: ArraySlice<UInt8>) throws(WebAuthnFailure) -> CBORItem {
        var result = cbor_load_result()
        let loaded = bytes.withUnsafeBufferPointer { cbor_load($0.baseAddress, $0.count, &result) }
        guard let loaded else { throw .malformedCBOR }
        let item = CBORItem(takingOwnershipOf: loaded)
        guard result.read == bytes.count else { throw .malformedCBOR }
        return item
    }

    deinit {
        var pointer: UnsafeMutablePointer<cbor_item_t>? = pointer
        cbor_decref(&pointer)
    }

    func value() throws(WebAuthnFailure) -> CBORValue { try Self.value(of: pointer) }

    /// Copies an item, which its owner keeps. ``CBORBounds`` limits the depth.
    private static func value(of item: UnsafeMutablePointer<cbor_item_t>) throws(WebAuthnFailure) -> CBORValue {
        switch cbor_typeof(item) {
        case CBOR_TYPE_UINT: return .unsigned(cbor_get_int(item))
        case CBOR_TYPE_NEGINT: return .negative(cbor_get_int(item))
        case CBOR_TYPE_BYTESTRING:
            return .bytes(
                [UInt8](UnsafeBufferPointer(start: cbor_bytestring_handle(item), count: cbor_bytestring_length(item))))
        case CBOR_TYPE_STRING:
            let bytes = UnsafeBufferPointer(start: cbor_string_handle(item), count: cbor_string_length(item))
            guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformedCBOR }
            return .text(text)
        case CBOR_TYPE_ARRAY:
            var elements: [CBORValue] = []
            for element in UnsafeBufferPointer(start: cbor_array_handle(item), count: cbor_array_size(item)) {
                guard let element else { throw .malformedCBOR }
                elements.append(try value(of: element))
            }
            return .array(elements)
        case CBOR_TYPE_MAP: return .map(try members(of: item))
        case CBOR_TYPE_FLOAT_CTRL:
            // Debian's libcbor ends the process if the simple value of a float is read.
            guard cbor_float_get_width(item) == CBOR_FLOAT_0, cbor_is_bool(item) else { return .other }
            return .bool(cbor_get_bool(item))
        default: throw .tagged
        }
    }

    private static func members(
        of item: UnsafeMutablePointer<cbor_item_t>
    ) throws(WebAuthnFailure) -> [CBORValue: CBORValue] {
        var members: [CBORValue: CBORValue] = [:]
        for pair in UnsafeBufferPointer(start: cbor_map_handle(item), count: cbor_map_size(item)) {
            guard let name = pair.key, let member = pair.value else { throw .malformedCBOR }
            let key = try value(of: name)
            switch key {
            case .unsigned, .negative, .text: break
            default: throw .malformedCBOR
            }
            guard members.updateValue(try value(of: member), forKey: key) == nil else { throw .duplicateKey }
        }
        return members
    }
}

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
