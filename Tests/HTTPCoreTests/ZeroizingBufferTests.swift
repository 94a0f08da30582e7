import Testing

@testable import HTTPCore

@Suite struct WipedBytesTests {
    @Test func `a copy that is changed leaves the other as it is`() {
        let first = ZeroizingBuffer("secret".utf8)
        var second = first
        second.append(0x21)
        second.withUnsafeMutableBytes { $0[0] = 0x53 }
        #expect(String(decoding: first, as: UTF8.self) == "secret")
        #expect(String(decoding: second, as: UTF8.self) == "Secret!")
    }

    @Test func `bytes that are forgotten are zero in the memory that is kept`() {
        var bytes = ZeroizingBuffer(capacity: 64)
        bytes.append(contentsOf: "a key".utf8)
        let storage = bytes.storage
        bytes.removeAll(keepingCapacity: true)
        // Somebody else refers to the memory, so it is theirs.
        #expect(storage.header.count == 5)
        var own = ZeroizingBuffer(capacity: 64)
        own.append(contentsOf: "a key".utf8)
        let address = own.withUnsafeBytes { $0.baseAddress }
        own.removeAll(keepingCapacity: true)
        own.append(capacity: 1) { _ in 0 }
        let after = own.withUnsafeBytes { _ in address?.load(as: UInt32.self) }
        #expect(after == 0)
    }

    @Test func `growing keeps the bytes`() {
        var bytes = ZeroizingBuffer()
        var expected: [UInt8] = []
        for round in 0..<2_000 {
            let byte = UInt8(truncatingIfNeeded: round)
            bytes.append(byte)
            expected.append(byte)
            if round % 100 == 0 {
                bytes.append(contentsOf: repeatElement(7, count: 33))
                expected += repeatElement(7, count: 33)
            }
        }
        #expect(bytes == ZeroizingBuffer(expected))
        #expect(Array(bytes[10..<20]) == Array(expected[10..<20]))
    }

    @Test func `a description shows no byte`() {
        #expect("\(ZeroizingBuffer("hunter2".utf8))" == "ZeroizingBuffer(7)")
        #expect("\(RequestBody(ZeroizingBuffer("hunter2".utf8)))" == "RequestBody")
    }

    @Test func `a body is taken once`() {
        let body = RequestBody(ZeroizingBuffer("x".utf8))
        #expect(body.take().count == 1)
        #expect(body.take().isEmpty)
    }
}
