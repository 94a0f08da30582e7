import Cryptography
import Testing

struct HexTests {
    @Test func `every byte survives, with two digits each`() {
        let bytes = [UInt8](UInt8.min...UInt8.max)
        let text = Hex.encode(bytes)
        #expect(text.utf8.count == 512)
        #expect(text.hasPrefix("000102030405060708090a0b0c0d0e0f10"))
        #expect(Hex.decode(text) == bytes)
        #expect(Hex.decode(text.uppercased()) == bytes)
    }

    @Test func `nothing is nothing`() {
        #expect(Hex.encode([UInt8]()).isEmpty)
        #expect(Hex.decode("") == [])
    }

    @Test(arguments: ["0", "abc", "0g", "g0", " 00", "0x00", "00 ", "0\u{665}", "/0", ":0", "@0", "`0"])
    func `anything else is refused`(_ text: String) {
        #expect(Hex.decode(text) == nil)
    }
}
