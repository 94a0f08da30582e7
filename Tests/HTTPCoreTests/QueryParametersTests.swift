import HTTPCore
import Testing

@Suite struct QueryParametersTests {
    private func parse(_ query: String) throws -> QueryParameters {
        try QueryParameters(parsing: Array(query.utf8)[...])
    }

    @Test func `parameters are decoded`() throws {
        let query = try parse("limit=10&since=a%3Db%26&empty=&caf%C3%A9=%20x%2B&eq=a=b")
        #expect(query["limit"] == "10")
        #expect(query["since"] == "a=b&")
        #expect(query["empty"] == "")
        #expect(query["caf\u{E9}"] == " x+")
        #expect(query["eq"] == "a=b")
        #expect(query["absent"] == nil)
        #expect(query.names == ["limit", "since", "empty", "caf\u{E9}", "eq"])
    }

    @Test func `no query has no parameters`() throws {
        #expect(try QueryParameters(parsing: nil).isEmpty)
        #expect(try parse("").isEmpty)
    }

    @Test(arguments: [
        ("a", "invalid_query"), ("=1", "invalid_query"), ("a=1&", "invalid_query"), ("&a=1", "invalid_query"),
        ("a=1&&b=2", "invalid_query"), ("a=%", "invalid_query"), ("a=%4", "invalid_query"), ("a=%zz", "invalid_query"),
        ("a=%00", "invalid_query"), ("a=%FF", "invalid_query"), ("a=x+y", "invalid_query"), ("%ff=1", "invalid_query"),
        ("a=1&a=2", "duplicate_parameter"), ("a=1&%61=2", "duplicate_parameter"),
        ((0...32).map { "p\($0)=1" }.joined(separator: "&"), "invalid_query"),
    ])
    func `a query that is not plain is refused`(query: String, code: String) {
        let problem = #expect(throws: Problem.self) { try parse(query) }
        #expect(problem?.status == .badRequest)
        #expect(problem?.code == code)
    }

    @Test func `a parameter has the type that is asked for`() throws {
        let query = try parse("limit=10&all=true&bad=01&sign=%2B1")
        #expect(try query.require("limit", as: Int.self) == 10)
        #expect(try query.optional("all", as: Bool.self) == true)
        #expect(try query.optional("absent", as: Int.self) == nil)
        for name in ["bad", "sign", "all"] {
            let problem = #expect(throws: Problem.self) { try query.require(name, as: Int.self) }
            #expect(problem?.code == "invalid_parameter")
            #expect(problem?.field == name)
        }
        #expect(
            #expect(throws: Problem.self) { try query.require("absent", as: Int.self) }?.code == "missing_parameter")
    }

    @Test func `an unknown parameter is named`() throws {
        let query = try parse("limit=10&other=1")
        try query.refuseUnknown(except: ["limit", "other"])
        let problem = #expect(throws: Problem.self) { try query.refuseUnknown(except: ["limit"]) }
        #expect(problem?.code == "unknown_parameter")
        #expect(problem?.field == "other")
    }
}
