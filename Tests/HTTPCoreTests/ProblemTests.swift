import HTTPCore
import Testing

@Suite struct ProblemTests {
    private func text(_ response: Response) -> String {
        guard case .bytes(let bytes) = response.body else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a problem is written as problem details`() {
        let problem = Problem(
            .forbidden, "quota_exceeded", title: "Too much", detail: "No room.", field: "items", limit: 10,
            members: [("allowed", 10), ("used", 11)], responseFields: ["Retry-After": "5"])
        let response = problem.response(requestID: RequestID(high: 0x0123_4567_89AB_CDEF, low: 1))
        #expect(response.status == .forbidden)
        #expect(response.fields["content-type"] == "application/problem+json")
        #expect(response.fields["retry-after"] == "5")
        #expect(
            text(response)
                == #"{"type":"urn:saltern:problem:quota_exceeded","title":"Too much","status":403,"#
                + #""code":"quota_exceeded","detail":"No room.","field":"items","limit":10,"#
                + #""requestId":"0123456789abcdef0000000000000001","allowed":10,"used":11}"#)
    }

    @Test func `what a problem does not have is not written`() {
        #expect(
            text(Problem(.notFound, "not_found").response())
                == #"{"type":"urn:saltern:problem:not_found","title":"Not Found","status":404,"code":"not_found"}"#)
    }

    @Test func `a method that is not allowed names those that are`() {
        #expect(Problem.methodNotAllowed(allowed: [.get, .head]).responseFields["allow"] == "GET, HEAD")
    }

    @Test(arguments: [
        (Refusal.badRequest(code: "x", detail: "y"), 400, "x"),
        (.headerTimeout, 408, "header_timeout"), (.bodyTimeout, 408, "body_timeout"),
        (.bodyTooLarge(limit: 1), 413, "body_too_large"), (.uriTooLong(limit: 1), 414, "uri_too_long"),
        (.expectationFailed, 417, "expectation_failed"), (.headerTooLarge(limit: 1), 431, "header_too_large"),
        (.transferCodingNotImplemented, 501, "transfer_coding_not_implemented"),
        (.handlerTimeout, 503, "handler_timeout"), (.overloaded(retryAfter: 3), 503, "overloaded"),
        (.versionNotSupported, 505, "version_not_supported"),
    ])
    func `every refusal has its status and code`(refusal: Refusal, status: UInt16, code: String) {
        #expect(refusal.problem.status.code == status)
        #expect(refusal.problem.code == code)
        #expect(refusal.problem.detail != nil)
        #expect(refusal.problem.responseFields.contains("Retry-After") == (status == 503))
    }

    @Test func `an overloaded server says when to come back`() {
        #expect(Refusal.overloaded(retryAfter: 3).problem.responseFields["retry-after"] == "3")
    }
}
