import HTTPCore
import Testing

@Suite struct JSONMembersTests {
    private struct Colour: Equatable {
        struct Unknown: ProblemConvertible {
            var problem: Problem { Problem(.unprocessableContent, "unknown_colour") }
        }

        let name: String

        init(json: JSONValue) throws {
            name = try json.string()
            if name != "red" { throw Unknown() }
        }
    }

    private func value(_ text: String) throws -> JSONValue { try JSONParser().parse(Array(text.utf8)) }

    /// The problem that reading throws.
    private func problem(_ text: String, _ read: (inout JSONMembers) throws -> Void) throws -> Problem? {
        let value = try value(text)
        return #expect(throws: Problem.self) { try JSONMembers.read(value, read) }
    }

    @Test func `an object is read member by member`() throws {
        let body = try value(
            #"{"userid":"ada","kdf":{"iterations":600000},"colour":"red","list":[1,2],"flag":true,"note":null}"#)
        var members = try JSONMembers(body)
        #expect(try members.string("userid") == "ada")
        #expect(try members.object("kdf") { try $0.integer("iterations", in: 1...1_000_000) } == 600_000)
        #expect(try members.required("colour", Colour.init(json:)).name == "red")
        #expect(try members.array("list", count: 1...2) { value, _ in try value.integer() } == [1, 2])
        #expect(try members.bool("flag"))
        #expect(try members.optional("note") { try $0.string() } == nil)
        #expect(try members.optional("absent") { try $0.string() } == nil)
        #expect(try members.optionalObject("gone") { try $0.string("x") } == nil)
        try members.finish()
    }

    @Test func `an unknown member is named`() throws {
        let problem = try problem(#"{"a":1,"b":2}"#) { _ = try $0.integer("a", in: 0...9) }
        #expect(problem?.status == .unprocessableContent)
        #expect(problem?.code == "unknown_member")
        #expect(problem?.field == "b")
    }

    @Test func `an unknown member of an inner object is named with its path`() throws {
        let problem = try problem(#"{"kdf":{"iterations":1,"x":0}}"#) { members in
            _ = try members.object("kdf") { try $0.integer("iterations", in: 0...9) }
        }
        #expect(problem?.code == "unknown_member")
        #expect(problem?.field == "kdf.x")
    }

    @Test func `an unknown member behind 64 others is found`() throws {
        let text = "{\((0..<70).map { "\"m\($0)\":0" }.joined(separator: ","))}"
        let problem = try problem(text) { members in
            for index in 0..<69 { _ = try members.integer("m\(index)", in: 0...0) }
        }
        #expect(problem?.code == "unknown_member")
    }

    @Test func `a long unknown name is sent back shortened`() throws {
        let problem = try problem("{\"\(String(repeating: "n", count: 1000))\":0}") { _ in }
        #expect(problem?.field == String(repeating: "n", count: 61) + "...")
    }

    @Test func `a missing member is named`() throws {
        let problem = try problem(#"{"kdf":{}}"#) { members in
            _ = try members.object("kdf") { try $0.string("salt") }
        }
        #expect(problem?.status == .unprocessableContent)
        #expect(problem?.code == "missing_member")
        #expect(problem?.field == "kdf.salt")
    }

    @Test(arguments: [#"{"a":1}"#, #"{"a":null}"#, #"{"a":["x"]}"#, #"{"a":{"b":"x"}}"#, #"{"a":true}"#])
    func `a member of a wrong type is named`(_ text: String) throws {
        let problem = try problem(text) { _ = try $0.string("a") }
        #expect(problem?.status == .unprocessableContent)
        #expect(problem?.code == "wrong_type")
        #expect(problem?.field == "a")
    }

    @Test(arguments: ["1", "1.0", "1e0", "10e-1"])
    func `an integer is one however it is written`(_ text: String) throws {
        var members = try JSONMembers(value("{\"a\":\(text)}"))
        #expect(try members.integer("a", in: 0...9) == 1)
    }

    @Test(arguments: ["1.5", "1e-1", "1e19", "-0", "\"1\"", "true", "null"])
    func `what is no integer is not taken for one`(_ text: String) throws {
        #expect(try problem("{\"a\":\(text)}") { _ = try $0.integer("a", in: 0...9) }?.code == "wrong_type")
    }

    @Test func `an integer out of range says its limit`() throws {
        func limit(_ text: String) throws -> Int? {
            let problem = try problem("{\"a\":\(text)}") { _ = try $0.integer("a", in: 2...8) }
            #expect(problem?.code == "out_of_range")
            return problem?.limit
        }
        #expect(try limit("1") == 2)
        #expect(try limit("9") == 8)
        #expect(try limit("-9223372036854775808") == 2)
        #expect(try limit("9223372036854775807") == 8)
    }

    @Test func `the errors of a domain type get the name of the field`() throws {
        let outer = try problem(#"{"colour":"blue"}"#) { _ = try $0.required("colour", Colour.init(json:)) }
        #expect(outer?.code == "unknown_colour")
        #expect(outer?.field == "colour")
        let inner = try problem(#"{"list":[{"colour":"red"},{"colour":"blue"}]}"#) { members in
            _ = try members.array("list", count: 0...9) { value, path in
                try JSONMembers.read(value, at: path) { try $0.optional("colour", Colour.init(json:)) }
            }
        }
        #expect(inner?.field == "list[1].colour")
    }

    @Test func `a field whose name begins like its parent's is not taken for a path`() throws {
        let problem = try problem(#"{"a":1}"#) { members in
            _ = try members.required("a") { _ in throw Problem(.unprocessableContent, "x", field: "abc") }
        }
        #expect(problem?.field == "a.abc")
    }

    @Test func `an array has a limited number of elements of one type`() throws {
        func problem(_ text: String) throws -> Problem? {
            try self.problem("{\"a\":\(text)}") { members in
                _ = try members.array("a", count: 1...2) { value, _ in try value.string() }
            }
        }
        #expect(try problem("[]")?.code == "wrong_count")
        #expect(try problem("[]")?.limit == 1)
        #expect(try problem(#"["a","b","c"]"#)?.limit == 2)
        #expect(try problem(#"["a",1]"#)?.field == "a[1]")
        #expect(try problem("{}")?.code == "wrong_type")
    }

    @Test func `errors that are no problems pass through`() throws {
        struct Other: Error {}
        let value = try value(#"{"a":1}"#)
        #expect(throws: Other.self) {
            try JSONMembers.read(value) { try $0.required("a") { _ in throw Other() } }
        }
    }

    @Test(arguments: ["[]", "1", "null", "\"{}\""])
    func `what is no object cannot be opened`(_ text: String) throws {
        #expect(try problem(text) { _ in }?.code == "wrong_type")
    }
}
