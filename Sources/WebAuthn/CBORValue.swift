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
