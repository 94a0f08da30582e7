import HTTPCore
import Testing

@Suite struct JSONParserTests {
    private static func parse(_ text: String) throws(JSONError) -> JSONValue {
        try JSONParser().parse(Array(text.utf8))
    }

    private static func code(_ bytes: [UInt8], _ parser: JSONParser = JSONParser()) -> JSONError.Code? {
        do throws(JSONError) {
            _ = try parser.parse(bytes)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        arguments: [
            ("null", .null), ("true", true), ("false", false), ("0", 0), ("-1", -1), ("\"\"", ""), ("[]", []),
            ("{}", [:]),
            (" \t\r\n1 \t\r\n", 1),
            ("[1,[2,[3]],{}]", [1, [2, [3]], [:]]),
            ("{\"a\":{\"b\":[true,null]},\"\":\"x\"}", ["a": ["b": [true, .null]], "": "x"]),
            ("{ \"a\" : 1 , \"b\" : 2 }", ["a": 1, "b": 2]),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("1.0", 1), ("1e2", 100), ("1E+2", 100), ("600000.0", 600_000), ("6e5", 600_000), ("-60.00e+4", -600_000),
            ("1.5e1", 15), ("100e-2", 1), ("0.0", 0), ("0e10", 0), ("0e99999999999999999999", 0),
            // Nothing is rounded on the way.
            ("9007199254740993.0", 9_007_199_254_740_993), ("9223372036854775807.0", .integer(.max)),
            ("-9223372036854775808.0", .integer(.min)), ("-92233720368547758.08e2", .integer(.min)),
            ("9223372036854775808.0", .double(9_223_372_036_854_775_808)), ("1e19", .double(1e19)),
            ("9007199254740992.5", .double(9_007_199_254_740_992)), ("100000000000000000000e-19", 10),
            ("15e-1", .double(1.5)), ("1e-2", .double(0.01)),
            ("-0", .double(-0.0)), ("-0.0", .double(-0.0)), ("-0.5e0", .double(-0.5)), ("0.1", .double(0.1)),
            ("1.7976931348623157e308", .double(.greatestFiniteMagnitude)), ("5e-324", .double(.leastNonzeroMagnitude)),
            ("1e-999", .double(0)),
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
            (#""\u0041\u00e9\u20AC\ud83d\uDE00\u0000""#, "A\u{E9}\u{20AC}\u{1F600}\u{0}"),
            ("\"h\u{E9}\u{20AC}\u{1F600}\u{7F}\"", "h\u{E9}\u{20AC}\u{1F600}\u{7F}"),
            (#""before \u0041 after""#, "before A after"),
            (#""\uFFFF\uD7FF\uE000""#, "\u{FFFF}\u{D7FF}\u{E000}"),
            (#""\uD800\uDC00\udbff\udfff""#, "\u{10000}\u{10FFFF}"),
        ] as [(String, JSONValue)])
    func `a document of RFC 8259 is taken`(text: String, value: JSONValue) throws {
        #expect(try Self.parse(text) == value)
    }

    @Test func `the sign of zero is kept`() throws {
        guard case .double(let zero) = try Self.parse("-0") else {
            Issue.record("-0 is not a double")
            return
        }
        #expect(zero.sign == .minus)
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "NaN", "Infinity", "-Infinity", "-", "+1", "01", "-01", "00", "1.", ".1",
        "1.e1",
        "1e", "1e+", "1e1.5", "0x10", "1_000", "--1", "- 1", "1 2", "1,", ",", "[", "]", "[1", "[1,", "[1,]", "[,1]",
        "[1 2]",
        "[1]]", "{", "}", "{]", "[}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{a:1}",
        "{1:1}",
        "{'a':1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\"::1}", "{\"a\":}", "{\"a\":1}x", "\"", "\"a", "'a'",
        "\"\\\"",
        "\"\\", "\"\\x41\"", "\"\\u\"", "\"\\u12\"", "\"\\u123g\"", "\"\\U0041\"", "\"\\'\"", "\"\n\"", "\"\t\"",
        "\"a\u{0}b\"",
        "\"\u{1F}\"", "\"aaaaaaaaaaaaaaaaaaaa\u{B}\"", "\u{FEFF}1", "1\u{FEFF}", "\u{A0}1", "\u{2028}1", "1\u{0}",
        "\u{C}1",
        "// c\n1", "/**/1", "#", "[1]//", "undefined", "\\u0031", "{\"a\":1}{\"a\":1}", "[\"a\",\n4\n,1,", "\u{E9}",
    ])
    func `a document outside of the grammar is malformed`(_ text: String) {
        #expect(Self.code(Array(text.utf8)) == .malformed)
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
            [0xE2, 0x82],
            [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0x98], [0xFE], [0xFF], [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28],
        ] as [[UInt8]])
    func `a string that is not UTF-8 is refused wherever it is`(_ bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        for padding in 0...9 {
            let text = [UInt8](repeating: 0x61, count: padding)
            #expect(Self.code([quote] + text + bytes + text + [quote]) == .notUTF8, "after \(padding)")
        }
        #expect(Self.code([quote] + bytes) == .notUTF8)
    }

    @Test func `every Unicode scalar goes through and every surrogate is refused`() throws {
        for scalar in stride(from: UInt32(0x20), through: 0x10FFFF, by: 17) {
            let text = Unicode.Scalar(scalar).map { String(Character($0)) }
            guard let text, text != "\"", text != "\\" else { continue }
            #expect(try Self.parse("\"\(text)\"") == .string(text))
        }
        for surrogate in stride(from: 0xD800, through: 0xDFFF, by: 13) {
            let hex = String(surrogate, radix: 16)
            #expect(Self.code(Array("\"\\u\(hex)\"".utf8)) == .loneSurrogate)
            #expect(Self.code(Array("\"\\u\(hex) \\u\(hex)\"".utf8)) == .loneSurrogate)
        }
        #expect(Self.code(Array(#""\ud800\u0041""#.utf8)) == .loneSurrogate)
        #expect(Self.code(Array(#""\udc00\ud800""#.utf8)) == .loneSurrogate)
        #expect(Self.code(Array(#""\ud800\n""#.utf8)) == .loneSurrogate)
    }

    @Test(arguments: [
        #"{"a":1,"a":1}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":1,"\u0061":2}"#, #"{"":1,"":2}"#, #"[{"x":{"a":1,"a":2}}]"#,
        #"{"a\/b":1,"a/b":2}"#,
    ])
    func `a member that comes twice is refused at every level`(_ text: String) {
        #expect(Self.code(Array(text.utf8)) == .duplicateMember)
    }

    @Test func `a duplicate is found among few and among many members, and named`() throws {
        for count in [1, 11, 12, 13, 14, 100, 1000] {
            let members = (0..<count).map { "\"m\($0)\":0" }
            #expect(Self.code(Array("{\(members.joined(separator: ","))}".utf8)) == nil)
            for twice in Set([0, count / 2, count - 1]) {
                let text = "{\((members + [members[twice]]).joined(separator: ","))}"
                let error = #expect(throws: JSONError.self) { try Self.parse(text) }
                #expect(error?.code == .duplicateMember)
                #expect(error?.member == "m\(twice)")
            }
        }
    }

    @Test func `nesting is limited to 32 levels of arrays and objects together`() {
        func nested(_ depth: Int) -> [UInt8] {
            let open = (0..<depth).map { $0.isMultiple(of: 2) ? "[" : "{\"a\":" }.joined()
            let close = (0..<depth).reversed().map { $0.isMultiple(of: 2) ? "]" : "}" }.joined()
            return Array((open + "0" + close).utf8)
        }
        #expect(Self.code(nested(32)) == nil)
        #expect(Self.code(nested(33)) == .tooDeep)
        #expect(Self.code([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)) == .tooDeep)
        #expect(Self.code(nested(3), JSONParser(depthLimit: 2)) == .tooDeep)
        #expect(Self.code(Array("[[],[],[[]],[[]]]".utf8), JSONParser(depthLimit: 3)) == nil)
    }

    @Test func `members of one object are limited`() {
        let parser = JSONParser(memberLimit: 2)
        #expect(Self.code(Array(#"{"a":1,"b":2}"#.utf8), parser) == nil)
        #expect(Self.code(Array(#"{"a":1,"b":2,"c":3}"#.utf8), parser) == .tooManyMembers)
        #expect(Self.code(Array(#"[{"a":1,"b":2},{"a":1,"b":2}]"#.utf8), parser) == nil)
    }

    @Test(arguments: [
        "9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999999", "1e309",
        "-1e309",
        "1e999999999", "0." + String(repeating: "1", count: 63), String(repeating: "1", count: 100_000),
    ])
    func `a number that does not fit is refused`(_ text: String) {
        #expect(Self.code(Array(text.utf8)) == .numberOutOfRange)
    }

    @Test func `an error says where it is`() {
        for (text, offset) in [
            ("[1,x]", 3), ("{\"a\":1,\"a\":2}", 7), ("\"ab\u{1}\"", 3), ("[1] 2", 4), ("12 1e999", 3),
        ] {
            let error = #expect(throws: JSONError.self) { try Self.parse(text) }
            #expect(error?.offset == offset, "\(text)")
        }
    }

    @Test func `a string shares the memory of the document, with escapes or without`() throws {
        var range: Range<UInt> = 0..<0
        func document() -> ZeroizingBuffer {
            let bytes = ZeroizingBuffer("[\"\(String(repeating: "A", count: 4096))\",\"x\\n\"]".utf8)
            let start = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
            range = start..<start + UInt(bytes.count)
            return bytes
        }
        let strings = try JSONParser().parse(document()).array().map { try $0.text() }
        for string in strings {
            #expect(range.contains(string.withUTF8 { UInt(bitPattern: $0.baseAddress) }))
        }
        #expect(strings[0].count == 4096)
        #expect(strings[1] == "x\n")
    }

    @Test func `a member is found at any depth`() throws {
        let value = try Self.parse(#"{"a":[1,{"b":{"pass\u0077ord":1}}],"c":"password"}"#)
        #expect(value.contains(memberNamed: "password"))
        #expect(!value.contains(memberNamed: "passwor"))
        #expect(!value.contains(memberNamed: "c d"))
        #expect(try !Self.parse(#"["password"]"#).contains(memberNamed: "password"))
    }

    @Test func `every error becomes a 400 with its code`() {
        for code in JSONError.Code.allCases {
            let problem = JSONParserTests.sample(code).map { (error: JSONError) in error.problem }
            #expect(problem?.status == .badRequest)
            #expect(problem?.code == code.rawValue)
            #expect(problem?.detail != nil)
        }
    }

    private static func sample(_ code: JSONError.Code) -> JSONError? {
        let document =
            switch code {
            case .malformed: "x"
            case .notUTF8: ""
            case .duplicateMember: #"{"a":1,"a":1}"#
            case .tooDeep: String(repeating: "[", count: 40)
            case .tooManyMembers: "{\((0...1024).map { "\"\($0)\":0" }.joined(separator: ","))}"
            case .tooManyValues: "[\(Array(repeating: "0", count: 2_000).joined(separator: ","))]"
            case .nameTooLong: "{\"\(String(repeating: "n", count: 1_025))\":0}"
            case .numberOutOfRange: "1e999"
            case .loneSurrogate: #""\ud800""#
            }
        do throws(JSONError) {
            _ = try JSONParser(valueLimit: 2_000).parse(code == .notUTF8 ? [0x22, 0xFF, 0x22] : Array(document.utf8))
            return nil
        } catch {
            return error
        }
    }
}
