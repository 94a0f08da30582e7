import Cryptography
import Foundation
import Testing

@testable import TransportSecurity

struct ProtectedFolderTests {
    private let temporary: TemporaryDirectory
    private let path: String

    init() throws {
        temporary = try TemporaryDirectory()
        path = "\(temporary.path)/keys"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    private func write(_ text: String, in folder: ProtectedFolder) throws {
        try folder.write(text.utf8, to: "file", access: .owner, existing: .replace)
    }

    private func text(_ folder: String) throws -> String {
        try String(contentsOfFile: "\(folder)/file", encoding: .utf8)
    }

    @Test func `a file is written where the folder is, and not where its path leads by then`() throws {
        let folder = try ProtectedFolder(path)
        try write("one", in: folder)
        let moved = path + ".moved"
        try FileManager.default.moveItem(atPath: path, toPath: moved)
        try FileManager.default.createDirectory(atPath: path + ".other", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".other")
        try write("two", in: folder)
        #expect(try text(moved) == "two")
        #expect(try folder.exists("file"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + ".other").isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved) == ["file"])
    }

    @Test func `who finds a folder locked waits, and not for ever`() throws {
        let other = try ProtectedFolder(path)
        do {
            let folder = try ProtectedFolder(path)
            try folder.lock()
            let error = failure { () throws(CertificateError) in try other.lock(patience: 100) }
            #expect(error?.description.contains("another process has locked the folder") == true)
        }
        // A process that a test starts at this moment has the descriptor until it runs its program.
        try other.lock()
    }

    @Test func `a folder is found whatever marks are in names on the way`() throws {
        let inner = "\(path)/\u{301}keys"
        try ProtectedFolder.make(inner + "/")
        let (folder, name) = try ProtectedFolder.ofFile(inner + "/\u{301}file")
        #expect(Array(folder.path.utf8) == Array(inner.utf8) && Array(name.utf8) == Array("\u{301}file".utf8))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give links away"))
    func `root follows its own links to a folder, and nobody else's`() throws {
        let link = "\(temporary.path)/link"
        let inner = "\(path)/inner"
        try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
        for target in [path, "keys", "../\(URL(filePath: temporary.path).lastPathComponent)/./keys/"] {
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
            for way in [link, link + "/", link + "/inner/.."] {
                try write(way, in: try ProtectedFolder(way))
                #expect(try text(path) == way, "\(target)")
            }
            #expect(lchown(link, 65_534, 65_534) == 0)
            for way in [link, link + "/inner"] {
                let error = failure { () throws(CertificateError) in try ProtectedFolder(way) }
                #expect(error?.description.contains("link that root does not own") == true, "\(target)")
            }
            try FileManager.default.removeItem(atPath: link)
        }
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "link")
        let error = failure { () throws(CertificateError) in try ProtectedFolder(link) }
        #expect(error?.code == "cannot_read")
    }

    @Test func `a link in the folder is neither read nor replaced`() throws {
        let folder = try ProtectedFolder(path)
        try write("precious", in: folder)
        try FileManager.default.createSymbolicLink(atPath: path + "/link", withDestinationPath: "file")
        let reading = failure { () throws(CertificateError) in try folder.read("link", access: .owner) }
        #expect(reading?.description.contains("it is a link") == true)
        let writing = failure { () throws(CertificateError) in
            try folder.write("other".utf8, to: "link", access: .owner, existing: .replace)
        }
        #expect(writing?.description.contains("it is a link") == true)
        #expect(try text(path) == "precious")
    }

    @Test func `a folder that is none, or is missing, is not opened`() throws {
        _ = try temporary.write("text".utf8, to: "file")
        for name in ["file", "missing", "missing/inner"] {
            let error = failure { () throws(CertificateError) in try ProtectedFolder("\(temporary.path)/\(name)") }
            #expect(error?.code == "cannot_read", "\(name)")
        }
    }

    @Test func `the folder of a file is found by its path`() throws {
        let (folder, name) = try ProtectedFolder.ofFile("\(path)/file")
        try folder.write("text".utf8, to: name, access: .owner, existing: .refuse)
        #expect(try text(path) == "text")
        #expect(try ProtectedFolder.ofFile("file").folder.path == ".")
        #expect(try ProtectedFolder.ofFile("/file").folder.path == "/")
    }
}
