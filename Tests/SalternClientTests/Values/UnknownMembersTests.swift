import Cryptography
import Foundation
import Testing

@testable import SalternClient

@Suite struct UnknownMembersTests {
    private static func tree(_ text: String) throws -> JSONTree { try #require(JSONTree(Array(text.utf8)), "\(text)") }

    private static func carried(_ result: String, from before: String, known: String) throws -> JSONTree {
        UnknownMembers.carry(into: try tree(result), from: .init(tree: try tree(before), known: try tree(known)))
    }

    @Test(arguments: [
        // A member, at the top and nested; one that is known and was removed stays away.
        (#"{"a":2}"#, #"{"a":1,"b":[1,{"c":2}]}"#, #"{"a":1}"#, #"{"a":2,"b":[1,{"c":2}]}"#),
        (#"{"a":{"x":2}}"#, #"{"a":{"x":1,"y":2}}"#, #"{"a":{"x":1}}"#, #"{"a":{"x":2,"y":2}}"#),
        (#"{"a":2}"#, #"{"a":1,"b":1}"#, #"{"a":1,"b":1}"#, #"{"a":2}"#),
        // Elements: moved, removed, changed with an id, changed at the same place.
        (
            #"[{"n":2},{"n":1}]"#, #"[{"n":1,"u":1},{"n":2,"u":2}]"#, #"[{"n":1},{"n":2}]"#,
            #"[{"n":2,"u":2},{"n":1,"u":1}]"#
        ),
        (#"[{"n":2}]"#, #"[{"n":1,"u":1},{"n":2,"u":2}]"#, #"[{"n":1},{"n":2}]"#, #"[{"n":2,"u":2}]"#),
        (
            #"[{"id":2,"n":9},{"id":3}]"#, #"[{"id":1,"u":1},{"id":2,"n":2,"u":2}]"#, #"[{"id":1},{"id":2,"n":2}]"#,
            #"[{"id":2,"n":9,"u":2},{"id":3}]"#
        ),
        (#"[{"n":9}]"#, #"[{"n":1,"u":1}]"#, #"[{"n":1}]"#, #"[{"n":9,"u":1}]"#),
        // Names that only look the same.
        ("{\"e\u{301}\":2}", "{\"\u{e9}\":1,\"e\u{301}\":1}", "{\"e\u{301}\":1}", "{\"e\u{301}\":2,\"\u{e9}\":1}"),
        // What has another shape by now takes nothing over.
        (#"{"a":[1]}"#, #"{"a":{"y":2}}"#, #"{"a":{}}"#, #"{"a":[1]}"#),
    ])
    func `what the type does not know is carried over`(
        _ case: (result: String, before: String, known: String, right: String)
    ) throws {
        #expect(
            try Self.carried(`case`.result, from: `case`.before, known: `case`.known) == Self.tree(`case`.right))
    }

    @Test func `numbers and strings keep their characters`() throws {
        let text = #"{"a":1.00,"b":12345678901234567890123,"c":"\u00e4\/","d":-1e400,"e":null,"f\"\\":[]}"#
        #expect(String(decoding: try Self.tree(text).text, as: UTF8.self) == text)
        #expect(try Self.tree(#"{"a":"\u00e4"}"#) == Self.tree(#" {"a" : "ä"} "#))
        for text in ["", "{", "[1,]", #"{"a"}"#, #"{"a":}"#, #""a"#, "[1]]", String(repeating: "[", count: 100_000)] {
            #expect(JSONTree(Array(text.utf8)) == nil)
        }
    }

    @Test func `of two versions the unknown members are merged, and a conflict keeps both`() throws {
        func side(_ text: String) throws -> UnknownMembers.Side {
            .init(tree: try Self.tree(text), known: try Self.tree(#"{"a":1}"#))
        }
        let base = try side(#"{"a":1,"x":1,"y":1,"z":1}"#)
        let mine = try side(#"{"a":1,"x":2,"y":1,"m":1}"#)
        let theirs = try side(#"{"a":1,"x":1,"z":1,"t":1}"#)
        let merged = try UnknownMembers().merge(Self.tree(#"{"a":3}"#), base: base, mine: mine, theirs: theirs)
        // x changed here, y removed there, z removed here, m and t added.
        #expect(try merged == Self.tree(#"{"a":3,"x":2,"m":1,"t":1}"#))
        let other = try side(#"{"a":1,"x":3}"#)
        #expect(throws: UnknownMembers.Conflict.self) {
            try UnknownMembers().merge(Self.tree(#"{"a":3}"#), base: base, mine: mine, theirs: other)
        }
    }
}
