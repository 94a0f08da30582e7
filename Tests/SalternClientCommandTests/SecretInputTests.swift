import CommandLineKit
import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct SecretInputTests {
    private func line(_ content: String, mode: Int = 0o600) throws -> String {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/secret"
        try #require(
            FileManager.default.createFile(
                atPath: path, contents: Data(content.utf8), attributes: [.posixPermissions: mode]))
        return try SecretInput.line(ofFile: path).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a secret is the first line of its file`() throws {
        #expect(try line("correct horse\nanything else\n") == "correct horse")
        #expect(try line("correct horse\r\n") == "correct horse")
        #expect(try line(" correct horse ") == " correct horse ")
        #expect(try line("\n") == "")
        #expect(throws: CommandFailure.self) { try line(String(repeating: "x", count: 5_000)) }
    }

    @Test func `a file that others can read is refused, and one that is not there`() throws {
        let directory = try TemporaryDirectory()
        #expect { try line("x", mode: 0o640) } throws: {
            ($0 as? CommandFailure)?.code == "file_exposed"
        }
        #expect { try SecretInput.line(ofFile: directory.missing) } throws: { ($0 as? CommandFailure)?.status == 66 }
    }

    @Test func `an empty secret is none, and one that is no text is none`() throws {
        let directory = try TemporaryDirectory()
        for (content, isText) in [([] as [UInt8], true), ([0xff, 0xfe], false)] {
            let path = directory.path + "/secret\(content.count)"
            try #require(
                FileManager.default.createFile(
                    atPath: path, contents: Data(content), attributes: [.posixPermissions: 0o600]))
            var arguments = try Arguments(["--password-file", path], OptionNames(valued: ["--password-file"]))
            let option = try PasswordOption(&arguments)
            #expect(throws: CommandFailure.self, "\(isText)") { try option.read() }
        }
    }
}
