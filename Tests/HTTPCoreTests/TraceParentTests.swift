import HTTPCore
import Testing

private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
private let span = "00f067aa0ba902b7"

@Suite struct TraceParentTests {
    /// What is read of the field: trace and span, as they are written to the log.
    private static func read(_ values: String...) -> String? {
        let fields = values.map { (name: "Traceparent", value: $0) }
        guard let parent = TraceParent(RequestHead(method: .get, target: "/", fields: fields).fields) else {
            return nil
        }
        return String(unsafeUninitializedCapacity: 32) { parent.writeTraceID(to: $0) } + "/"
            + String(unsafeUninitializedCapacity: 16) { parent.writeSpanID(to: $0) }
    }

    @Test func `trace and span are read, whatever the flags are`() {
        for flags in ["00", "01", "ff", "0a"] {
            #expect(Self.read("00-\(trace)-\(span)-\(flags)") == "\(trace)/\(span)")
        }
        let high = "0000000000000000ffffffffffffffff"
        #expect(Self.read("00-\(high)-ffffffffffffffff-01") == "\(high)/ffffffffffffffff")
        let low = "80000000000000000000000000000000"
        #expect(Self.read("00-\(low)-0000000000000001-01") == "\(low)/0000000000000001")
    }

    @Test func `of a later version what it has in common with this one is read`() {
        for value in [
            "01-\(trace)-\(span)-01", "cc-\(trace)-\(span)-01-what-the-future-brings",
            "fe-\(trace)-\(span)-01-",
        ] {
            #expect(Self.read(value) == "\(trace)/\(span)", "\(value)")
        }
    }

    @Test(arguments: [
        "", "00", "-\(trace)-\(span)-01",
        // The version is forbidden, or none.
        "ff-\(trace)-\(span)-01", "0g-\(trace)-\(span)-01", "0A-\(trace)-\(span)-01", ".0-\(trace)-\(span)-01",
        // Zeros are no identifiers.
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
        // Capital digits, and what is no digit.
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-\(span)-01", "00-\(trace)-00F067AA0BA902B7-01",
        "00-\(trace)-\(span)-0A", "00-\(trace)-\(span)-0x", "00-\(trace)-00f067aa0ba902b\u{0}-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-\(span)-01",
        // Too short, too long, shifted, or other characters in between.
        "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-0", "00-\(trace)-\(span)-011",
        "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-more", "00-\(trace)0-0f067aa0ba902b7-01",
        "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01", "01-\(trace)-\(span)-01.more",
        "01-\(trace)-\(span)-011",
    ])
    func `what is not valid is as if it had not come`(value: String) {
        #expect(Self.read(value) == nil)
    }

    @Test func `two fields are none`() {
        let value = "00-\(trace)-\(span)-01"
        #expect(Self.read() == nil)
        #expect(Self.read(value, value) == nil)
    }
}
