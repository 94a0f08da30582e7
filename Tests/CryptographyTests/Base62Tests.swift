import Cryptography
import Testing

@Suite struct Base62Tests {
    private func text(_ value: UInt128) -> String { String(decoding: Base62.encode(value), as: UTF8.self) }

    @Test(arguments: [
        (0, "0000000000000000000000"),
        (1, "0000000000000000000001"),
        (61, "000000000000000000000z"),
        (62, "0000000000000000000010"),
        (UInt128(1) << 64, "00000000000LygHa16AHYG"),
        (UInt128.max, "7n42DGM5Tflk9n8mt7Fhc7"),
    ])
    func `a value has one text`(_ value: UInt128, _ expected: String) {
        #expect(text(value) == expected)
        #expect(Base62.decode(Array(expected.utf8)) == value)
        let bytes = withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
        #expect(Base62.encode(bytes: bytes) == SecureBytes(copying: expected.utf8))
        #expect(Base62.decodeBytes(expected.utf8) == SecureBytes(copying: bytes))
    }

    @Test func `every value comes back`() {
        for _ in 0..<2_000 {
            let value = UInt128.random(in: .min ... .max) >> UInt128.random(in: 0...127)
            #expect(Base62.decode(Base62.encode(value)) == value)
            let bytes = SecureBytes(copying: withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) })
            #expect(Base62.encode(bytes: bytes) == SecureBytes(copying: Base62.encode(value)))
            #expect(Base62.decodeBytes(Base62.encode(value)) == bytes)
        }
    }

    @Test(arguments: [
        "", "0", "000000000000000000000", "00000000000000000000000",
        // One more than 128 bits hold, and the greatest of 22 digits.
        "7n42DGM5Tflk9n8mt7Fhc8", "zzzzzzzzzzzzzzzzzzzzzz",
        "000000000000000000000-", "00000000000000000000 0", "00000000000000000000é", "/000000000000000000000",
        "000000000000000000000:", "@000000000000000000000", "[000000000000000000000", "`000000000000000000000",
        "{000000000000000000000", "0000000000000000000\u{0}00",
    ])
    func `anything else is no value`(_ text: String) {
        #expect(Base62.decode(Array(text.utf8)) == nil)
        #expect(Base62.decodeBytes(text.utf8) == nil)
    }
}
