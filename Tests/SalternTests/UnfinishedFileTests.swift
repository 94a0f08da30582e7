import CommandLineKit
import Foundation
import Testing

@testable import saltern

@Suite struct UnfinishedFileTests {
    private static func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    private static func names(_ folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
    }

    private static func write(_ text: String, _ file: UnfinishedFile) {
        #expect(Foundation.write(file.content.descriptor, text, text.utf8.count) == text.utf8.count)
    }

    @Test(arguments: [false, true]) func `it has its name when it is whole`(hasName: Bool) throws {
        try Self.withFolder { folder in
            let path = folder.appendingPathComponent("backup").path
            do {
                let file = try UnfinishedFile(path, hasName: hasName)
                Self.write("whole", file)
                #expect(try !Self.names(folder).contains("backup"))
                try file.keep()
            }
            #expect(try Self.names(folder) == ["backup"])
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "whole")
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test(arguments: [false, true]) func `a file that came under its name meanwhile stays`(hasName: Bool) throws {
        try Self.withFolder { folder in
            let path = folder.appendingPathComponent("backup").path
            do {
                let file = try UnfinishedFile(path, hasName: hasName)
                Self.write("mine", file)
                try "another's".write(toFile: path, atomically: false, encoding: .utf8)
                let failure = #expect(throws: CommandFailure.self) { try file.keep() }
                #expect(failure?.messages == ["\(path) exists already"])
            }
            #expect(try Self.names(folder) == ["backup"])
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "another's")
        }
    }

    @Test(arguments: [false, true]) func `what is not kept is gone, and two at once are two`(hasName: Bool) throws {
        try Self.withFolder { folder in
            do {
                let path = folder.appendingPathComponent("backup").path
                let one = try UnfinishedFile(path, hasName: hasName)
                let other = try UnfinishedFile(path, hasName: hasName)
                Self.write("one", one)
                #expect(try other.content.contents() == "")
            }
            #expect(try Self.names(folder).isEmpty)
        }
    }
}
