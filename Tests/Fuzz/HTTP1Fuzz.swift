import HTTPCore
import HTTPServer

/// What the codec says about some bytes, in a form that can be compared.
private struct Outcome: Equatable {
    var requests: [String] = []
    var bodies: [[UInt8]] = []
    var ends = 0
    var error: HTTP1Error?
}

/// Feeds `bytes` in pieces whose lengths come from `pieces`, over and over; all at once when it is empty.
private func outcome(of bytes: [UInt8], pieces: [UInt8]) -> Outcome {
    var limits = HTTP1Limits()
    // Small, so that the fuzzer reaches them with short inputs.
    limits.requestLine = 192
    limits.header = 512
    limits.fieldCount = 8
    limits.chunkLine = 40
    limits.chunkExtensions = 64
    var parser = HTTP1RequestParser(limits: limits)
    var outcome = Outcome()
    var position = 0
    var turn = 0
    while position < bytes.count {
        let length = pieces.isEmpty ? bytes.count : Int(pieces[turn % pieces.count] % 24) + 1
        turn += 1
        let end = min(bytes.count, position + length)
        bytes[position..<end].withUnsafeBytes { parser.append($0) }
        position = end
        do throws(HTTP1Error) {
            while let event = try parser.next() {
                switch event {
                case .head(let head):
                    check(head)
                    outcome.requests.append(summary(of: head))
                    outcome.bodies.append([])
                    parser.bodyLimit = 4096
                case .body(let bytes):
                    precondition(!bytes.isEmpty, "a body event has bytes")
                    outcome.bodies[outcome.bodies.count - 1] += bytes
                case .end:
                    outcome.ends += 1
                }
            }
        } catch {
            do throws(HTTP1Error) {
                _ = try parser.next()
                preconditionFailure("an error is final")
            } catch let again {
                precondition(again == error, "an error stays the same")
            }
            outcome.error = error
            return outcome
        }
    }
    precondition(parser.bufferedByteCount <= 512, "what is not understood yet is within the limits")
    return outcome
}

private func summary(of head: RequestHead) -> String {
    "\(head.method) \(head.path) \(head.query ?? "-") \(head.versionMinor) \(head.framing) \(head.wantsKeepAlive) "
        + "\(head.expectsContinue) \(head.fields.lines)"
}

private let router = Router<Void>(
    ["/", "/v1/items", "/v1/items/{id}", "/v1/items/batch", "/v1/rotations/{id}/items", "/s/{id}"].map {
        Route(.get, $0) { _ in Response.noContent }
    })

/// Writes an accepted head again, reads it back, and takes its target and fields through everything behind the codec.
private func check(_ head: RequestHead) {
    let lines = head.fields.lines
    precondition(lines.count <= 8, "the number of fields is limited")
    for (name, value) in lines {
        precondition(
            !name.isEmpty && !name.utf8.contains { $0 <= 0x20 || $0 >= 0x7F || $0 == 0x3A }, "a name is a token")
        precondition(
            !value.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }, "a value has no control characters")
    }
    var written = Array(
        "\(head.method) \(head.path)\(head.query.map { "?" + $0 } ?? "") HTTP/1.\(head.versionMinor)\r\n".utf8)
    for entry in head.fields.lines { written += Array("\(entry.name): \(entry.value)\r\n".utf8) }
    written += [0x0D, 0x0A]
    // Bytes that are not UTF-8 became longer on the way through String; the default limits leave room for that.
    var parser = HTTP1RequestParser()
    parser.append(written)
    guard case .head(let again)? = try? parser.next() else { preconditionFailure("an accepted head is accepted again") }
    precondition(summary(of: again) == summary(of: head), "an accepted head reads back the same")

    if case .found(_, let parameters) = router.match(.get, head.pathBytes), let id = parameters["id"] {
        precondition(!id.isEmpty && !id.utf8.contains { $0 == 0x2F || $0 == 0 }, "a parameter is one segment")
    }
    _ = try? QueryParameters(parsing: head.queryBytes)
    checkResponse(echoing: lines)
}

/// Whatever is put into the fields of a response, it has as many lines as fields.
private func checkResponse(echoing lines: [(name: String, value: String)]) {
    var response = Response(status: .ok, body: .bytes([0x0D, 0x0A]))
    for (name, value) in lines { response.fields.append("X-" + name, value + "\r\nInjected: \0" + value) }
    var output: [UInt8] = []
    HTTP1ResponseSerializer().append(response, date: HTTPDate(secondsSinceEpoch: 0), to: &output)
    let lineFeeds = output.filter { $0 == 0x0A }.count
    precondition(lineFeeds == lines.count + 5, "a field is one line")
    precondition(!output.contains(0), "no NUL is sent")
}

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let whole = outcome(of: bytes, pieces: [])
    precondition(outcome(of: bytes, pieces: [0]) == whole, "byte by byte gives the same")
    precondition(outcome(of: bytes, pieces: Array(bytes.suffix(7))) == whole, "any pieces give the same")
    return 0
}
