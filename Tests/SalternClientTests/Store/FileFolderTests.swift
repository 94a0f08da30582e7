import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Names on the disk.
@Suite struct FileFolderTests {
    @Test func `the folder of a file is written to the disk, and a missing one is an error`() throws {
        let folder = try TemporaryDirectory()
        #expect(FileFolder.sync(of: folder.path + "/file"))
        #expect(FileFolder.sync(of: "file"))
        #expect(!FileFolder.sync(of: folder.path + "/missing/file"))
        try Data().write(to: URL(filePath: folder.path + "/file"))
        #expect(!FileFolder.sync(of: folder.path + "/file/other"))
    }

    @Test func `a new file is complete after it was finished, and does not replace another`() throws {
        let folder = try TemporaryDirectory()
        let url = URL(filePath: folder.path + "/file")
        let file = try NewFile(url)
        try file.append([1, 2])
        try file.finish()
        #expect(try Data(contentsOf: url) == Data([1, 2]))
        #expect(throws: VaultError.self) { try NewFile(url) }
    }
}
