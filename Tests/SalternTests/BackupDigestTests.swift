import CommandLineKit
import Foundation
import Testing

@testable import saltern

@Suite struct BackupDigestTests {
    private let console = Console(environment: [:])
    private let content = (0..<6_000).map { UInt8(truncatingIfNeeded: $0 &* 167 >> 3) }

    private func file(_ bytes: [UInt8]) throws -> OpenFile {
        let file = try OpenFile(contents: "")
        try file.append(bytes[...])
        return file
    }

    private func finding(_ bytes: [UInt8]) throws -> BackupDigest.Finding {
        try BackupDigest.check(file(bytes), console)
    }

    private func sealed() throws -> [UInt8] {
        let file = try file(content)
        try BackupDigest.append(to: file, console)
        return try file.bytes(at: 0, count: file.size())
    }

    @Test func `what follows is a line with the digest, and nothing before it changes`() throws {
        let sealed = try sealed()
        #expect(sealed.prefix(content.count) == content[...])
        let line = String(decoding: sealed.dropFirst(content.count), as: UTF8.self)
        #expect(line.wholeMatch(of: /\nsaltern backup, SHA-256 of all before this line: [0-9a-f]{64}\n/) != nil)
        #expect(try finding(sealed) == .matches)
    }

    @Test func `any other bit is noticed, also in the line itself`() throws {
        let sealed = try sealed()
        let places = Array(stride(from: 0, to: content.count, by: 211)) + Array(content.count..<sealed.count)
        for place in places {
            for bit in [0, 5] {
                var damaged = sealed
                damaged[place] ^= 1 << bit
                #expect(try finding(damaged) == .differs, "bit \(bit) of byte \(place)")
            }
        }
    }

    @Test func `an end that is missing, and one that was added, are noticed`() throws {
        let sealed = try sealed()
        let length = sealed.count - content.count
        for missing in 1...length - 8 { #expect(try finding(sealed.dropLast(missing)) == .differs, "\(missing) bytes") }
        #expect(try finding(sealed + [10]) == .differs)
        #expect(try finding(sealed + [UInt8](repeating: 0, count: 512)) == .differs)
        #expect(try finding(Array(sealed.dropFirst(content.count))) == .differs)
    }

    @Test func `what another program has written has none`() throws {
        for bytes in [[], Array("saltern".utf8), content, try sealed().dropLast(sealed().count - content.count)] {
            #expect(try finding(Array(bytes)) == .missing)
        }
    }

    @Test func `a pipe is refused at once, and a folder`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipe = folder.appendingPathComponent("pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        for path in [pipe, folder.path] {
            let failure = #expect(throws: CommandFailure.self) { try OpenFile(reading: path) }
            #expect(failure?.messages == ["\(path) is not a regular file"])
        }
    }
}
