import HTTPCore

private let parser = JSONParser(depthLimit: 8, memberLimit: 64, valueLimit: 512, numberLengthLimit: 32)

private func written(_ value: JSONValue) -> [UInt8] {
    var writer = JSONWriter()
    writer.value(value)
    return writer.finish()
}

/// Parses in pieces, so that the document is left and gone on with at any byte.
private func parsedInPieces(_ document: [UInt8]) -> Result<JSONValue, JSONError> {
    var parsing = JSONParsing(ZeroizingBuffer(document), limits: parser)
    let work = 1 + Int(document.first ?? 0) % 97
    do throws(JSONError) {
        while true {
            if let value = try parsing.advance(work: work) { return .success(value) }
        }
    } catch {
        return .failure(error)
    }
}

/// The value as it is when it comes back: a number that is no integer, but that floating point cannot tell from one
/// (`1e-999`), is written as one.
private func rounded(_ value: JSONValue) -> JSONValue {
    switch value {
    case .double(let number):
        if number.sign == .plus || number != 0, let integer = Int64(exactly: number) {
            .integer(integer)
        } else {
            value
        }
    case .array(let elements): .array(elements.map(rounded))
    case .object(let object):
        .object(JSONObject(object.members.map { (name: $0.name.string, value: rounded($0.value)) }))
    default: value
    }
}

/// Holds what was parsed against the promises of the parser.
private func check(_ value: JSONValue, depth: Int = 0) {
    switch value {
    case .null, .bool, .integer:
        break
    case .double(let number):
        precondition(number.isFinite, "a number is finite")
    case .string(let text):
        precondition(String(validating: text.utf8, as: UTF8.self) != nil, "a string is UTF-8")
    case .array(let elements):
        precondition(depth < 8, "the depth is limited")
        for element in elements { check(element, depth: depth + 1) }
    case .object(let object):
        precondition(depth < 8, "the depth is limited")
        precondition(object.members.count <= 64, "the number of members is limited")
        precondition(Set(object.members.map(\.name.string)).count <= object.members.count)
        precondition(
            Set(object.members.map { Array($0.name.utf8) }).count == object.members.count, "no name comes twice")
        for member in object.members { check(member.value, depth: depth + 1) }
    }
}

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let document = Array(UnsafeBufferPointer(start: start, count: count))
    do throws(JSONError) {
        let value = try parser.parse(document)
        check(value)
        precondition((try? parsedInPieces(document).get()) == value, "pieces make no difference")
        let rounded = rounded(value)
        let text = written(rounded)
        guard let again = try? JSONParser().parse(text) else { preconditionFailure("what was written is JSON") }
        precondition(again == rounded, "what was written is the same value")
        precondition(written(again) == text, "the second writing is like the first")
        if case .object = value {
            var members = try? JSONMembers(value)
            _ = try? members?.optional("a") { try $0.integer(in: 0...9) }
            _ = try? members?.finish()
        }
    } catch {
        precondition((0...document.count).contains(error.offset), "an error is somewhere in the document")
        precondition(parsedInPieces(document) == .failure(error), "pieces make no difference to an error")
    }
    if let timestamp = UTCTimestamp(rfc3339: document) {
        precondition(UTCTimestamp(rfc3339: timestamp.description.utf8) == timestamp, "a time reads back the same")
    }
    return 0
}
