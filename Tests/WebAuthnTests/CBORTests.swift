import Testing

@testable import WebAuthn

struct CBORTests {
    @Test(
        arguments: [
            ([0x00], CBORValue.unsigned(0)),
            ([0x18, 0x18], .unsigned(24)),
            // A number in a form that is not the shortest: authenticators of the field send some.
            ([0x18, 0x01], .unsigned(1)),
            ([0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .unsigned(.max)),
            ([0x26], .negative(6)),
            ([0x3B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .negative(.max)),
            ([0x40], .bytes([])),
            ([0x42, 1, 2], .bytes([1, 2])),
            ([0x60], .text("")),
            ([0x62, 0xC3, 0xA4], .text("ä")),
            ([0x80], .array([])),
            ([0x82, 0x01, 0x80], .array([.unsigned(1), .array([])])),
            ([0xA0], .map([:])),
            ([0xA1, 0x01, 0xF5], .map([.unsigned(1): .bool(true)])),
            ([0xF4], .bool(false)),
            ([0xF6], .other),
            ([0xF7], .other),
            ([0xF9, 0x3C, 0x00], .other),
            ([0xFA, 0, 0, 0, 0], .other),
            ([0xFB, 0, 0, 0, 0, 0, 0, 0, 0], .other),
        ] as [([UInt8], CBORValue)])
    func `items are decoded`(bytes: [UInt8], value: CBORValue) throws {
        #expect(try CBORValue(decoding: bytes[...]) == value)
    }

    private static let deep = [UInt8](repeating: 0x81, count: CBORBounds.depthLimit)

    @Test(
        arguments: [
            ([], .malformedCBOR),
            ([0x18], .malformedCBOR),
            ([0x19, 0], .malformedCBOR),
            ([0x1A, 0, 0, 0], .malformedCBOR),
            ([0x1B, 0, 0, 0, 0, 0, 0, 0], .malformedCBOR),
            ([0x1C], .malformedCBOR),
            ([0x1D], .malformedCBOR),
            ([0x1E], .malformedCBOR),
            ([0x1F], .malformedCBOR),
            ([0x3F], .malformedCBOR),
            ([0x41], .malformedCBOR),
            ([0x5B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .malformedCBOR),
            ([0x5B, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .malformedCBOR),
            ([0x61, 0xFF], .malformedCBOR),
            ([0x63, 0xED, 0xA0, 0x80], .malformedCBOR),
            ([0x81], .malformedCBOR),
            ([0x9B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .malformedCBOR),
            ([0xA1], .malformedCBOR),
            ([0xA1, 0x01], .malformedCBOR),
            ([0xBB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .malformedCBOR),
            ([0xBB, 0x80, 0, 0, 0, 0, 0, 0, 0], .malformedCBOR),
            ([0xA1, 0x80, 0x01], .malformedCBOR),
            ([0xA1, 0xF5, 0x01], .malformedCBOR),
            ([0xA1, 0x40, 0x01], .malformedCBOR),
            ([0xF8, 0x14], .malformedCBOR),
            ([0xFC], .malformedCBOR),
            ([0xFF], .malformedCBOR),
            ([0x5F, 0xFF], .indefiniteLength),
            ([0x7F, 0xFF], .indefiniteLength),
            ([0x9F, 0xFF], .indefiniteLength),
            ([0xBF, 0xFF], .indefiniteLength),
            ([0xC0, 0x60], .tagged),
            ([0xD9, 0xD9, 0xF7, 0xA0], .tagged),
            ([0xA2, 0x01, 0x01, 0x01, 0x02], .duplicateKey),
            // The same number in two forms.
            ([0xA2, 0x01, 0x01, 0x18, 0x01, 0x02], .duplicateKey),
            ([0xA2, 0x61, 0x61, 0x01, 0x61, 0x61, 0x02], .duplicateKey),
            ([0x00, 0x00], .trailingBytes),
            ([0xA0, 0xA0], .trailingBytes),
            (deep + [0x80], .tooDeep),
            ([0x98, 0xFF] + [UInt8](repeating: 0x80, count: 254) + [0x81, 0x00], .tooManyItems),
        ] as [([UInt8], WebAuthnFailure)])
    func `bytes that are not the CBOR of WebAuthn are refused`(bytes: [UInt8], failure: WebAuthnFailure) {
        #expect(throws: failure) { try CBORValue(decoding: bytes[...]) }
    }

    @Test func `the deepest nesting is decoded`() throws {
        _ = try CBORValue(decoding: (Self.deep + [0x00])[...])
    }

    @Test func `each prefix of an attestation object is refused`() {
        let whole = RegistrationCase(.named("packed-self.ES256")).attestationObject
        for count in 0..<whole.count {
            #expect(throws: WebAuthnFailure.malformedCBOR) { try AttestationObject([UInt8](whole.prefix(count))) }
        }
    }

    @Test func `no exchanged bit crashes`() {
        for vector in Vector.all {
            let whole = RegistrationCase(vector).attestationObject
            for index in whole.indices {
                for bit in 0..<8 {
                    var changed = whole
                    changed[index] ^= 1 << UInt8(bit)
                    _ = try? AttestationObject(changed)
                }
            }
        }
    }
}
