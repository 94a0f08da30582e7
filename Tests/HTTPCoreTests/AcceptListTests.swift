import HTTPCore
import Testing

@Suite struct AcceptListTests {
    private static let offers: [StaticString] = ["application/json", "application/octet-stream"]

    private func best(_ values: String...) throws -> Int? {
        let fields = values.map { (name: "Accept", value: $0) }
        return try AcceptList.best(of: Self.offers, in: RequestHead(method: .get, target: "/", fields: fields).fields)
    }

    @Test func `without the field the first is chosen`() throws {
        #expect(try best() == 0)
    }

    @Test(arguments: ["", ",", " , "])
    func `a list without elements chooses nothing`(value: String) throws {
        #expect(try best(value) == 0)
    }

    @Test(arguments: [
        ("*/*", 0), ("application/json", 0), ("APPLICATION/Octet-Stream", 1), ("application/octet-stream;q=0.001", 1),
        ("application/json;q=0, */*", 1), ("*/*, application/json;q=0.9", 1),
        ("application/*;q=0.2, application/json;q=0.1", 1),
        ("application/json;q=0.5,application/octet-stream;q=0.5", 0), (" application/octet-stream ; q=1.000 , ", 1),
        ("text/html, application/octet-stream;Q=0.8", 1),
        ("application/json;q=0.123, application/octet-stream;q=0.124", 1),
        // What else is said of a type chooses nothing.
        ("application/json; charset=utf-8", 0), ("application/octet-stream;v=\"1 2\";q=0.5", 1),
        ("application/json;q=0.2;ext=1, application/octet-stream;v=2;q=0.3", 1),
        ("text/html;, application/octet-stream;;q=0.8;", 1),
        ("text/x;v=\"a,b;c\", application/octet-stream;q=\"0.5\"", 1),
        // What HttpURLConnection of Java sends.
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", 0), ("*", 0), ("* ; q=0.5", 0),
        ("application/json;q=.5,application/octet-stream;q=.501", 1), ("*;q=0.1, application/octet-stream;q=.2", 1),
        // The closest range counts, wherever it stands.
        ("*/*;q=1, application/*;q=0, application/octet-stream;q=0.3", 1),
    ])
    func `the highest weight wins, and of equals the first`(value: String, index: Int) throws {
        #expect(try best(value) == index)
    }

    @Test(arguments: ["text/html", "application/json;q=0", "*/*;q=0", "image/*, text/*"])
    func `nothing may be acceptable`(value: String) throws {
        #expect(try best(value) == nil)
    }

    @Test func `several lines are one list`() throws {
        #expect(try best("application/json;q=0.1", "application/octet-stream") == 1)
    }

    @Test(arguments: [
        "json", "application/", "/json", "*/json", "application/json/x", "application/json;q",
        "application/json;q=", "application/json;q=1.001", "application/json;q=2", "application/json;q=.",
        "application/json;q=.1234", "application/json;q=0.1234", "application/json;q=-1",
        "application/json;q=0,5x/", "application/json;q=1;q=1", "application/json;charset", "application/json;=x",
        "application/json;v=", "application/json;v=\"", "application/json;v=a b", "application json",
        "a\"b/c", "**", "*x", "*;q",
    ])
    func `what is no list of media types is refused`(value: String) {
        let problem = #expect(throws: Problem.self) { try best(value) }
        #expect(problem?.status == .badRequest)
        #expect(problem?.code == "malformed_accept")
    }
}
