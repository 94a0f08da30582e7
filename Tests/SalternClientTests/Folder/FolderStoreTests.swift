import SalternTesting
import Testing

@testable import SalternClient

struct FolderStoreTests {
    private let directory: TemporaryDirectory
    private let store: Store
    private var folders: FolderStore { store.folders }

    init() throws {
        directory = try TemporaryDirectory()
        store = try Store(path: directory.path + "/store.sqlite")
    }

    private func file(_ path: String, _ digest: UInt8 = 1) throws -> KnownFile {
        KnownFile(
            path: try FolderPath(path), content: FileContent(digest: [digest], byteCount: 1, isExecutable: false),
            stamp: ItemStamp(revision: 5, sequence: nil))
    }

    @Test func `a path has one folder, and a folder one path`() throws {
        let (first, second) = (ItemID.random(), ItemID.random())
        try folders.setFolder(first, at: "/a")
        try folders.setFolder(second, at: "/a")
        #expect(try folders.folder(at: "/a") == second && folders.root(ofFolder: first) == nil)
        try folders.setFolder(second, at: "/b")
        #expect(try folders.all().map(\.root) == ["/b"])
        #expect(try folders.isRoot("/b", ofFolder: second) && !folders.isRoot("/a", ofFolder: second))
    }

    @Test func `a path of a folder has one file`() throws {
        let folder = ItemID.random()
        let (first, second) = (ItemID.random(), ItemID.random())
        let known = try file("a")
        try folders.setKnownFile(first, known, in: folder)
        try folders.setKnownFile(first, known, in: .random())
        #expect(try folders.knownFile(first, in: folder) == known)
        try folders.setKnownFile(second, known, in: folder)
        #expect(try folders.knownFiles(in: folder) == [second: known])
        try folders.setKnownFile(second, nil, in: folder)
        #expect(try folders.knownFileCount(in: folder) == 0)
    }

    @Test func `files around a path are those at it, below it and above it`() throws {
        let folder = ItemID.random()
        var ids: [String: ItemID] = [:]
        for path in ["a", "a/b", "a/b/c", "a/b0", "a/b-", "b"] {
            let id = ItemID.random()
            ids[path] = id
            try folders.setKnownFile(id, file(path), in: folder)
        }
        let around = Set(try folders.knownFiles(around: FolderPath("a/b"), in: folder))
        #expect(around == Set(["a", "a/b", "a/b/c"].compactMap { ids[$0] }))
    }

    @Test func `content is known if another file has it`() throws {
        let folder = ItemID.random()
        let (first, second) = (ItemID.random(), ItemID.random())
        try folders.setKnownFile(first, file("a", 1), in: folder)
        try folders.setKnownFile(second, file("b", 1), in: folder)
        #expect(try folders.isKnown([1], except: [first], in: folder))
        #expect(try !folders.isKnown([1], except: [first, second], in: folder))
        #expect(try !folders.isKnown([2], except: [], in: folder))
    }

    @Test func `an upload of a path is replaced and removed`() throws {
        let folder = ItemID.random()
        let path = try FolderPath("a")
        let attachment = ItemID.random()
        try folders.setUpload(path, .random(), in: folder)
        try folders.setUpload(path, attachment, in: folder)
        #expect(try folders.uploads(in: folder) == [path: attachment])
        try folders.setUpload(path, nil, in: folder)
        #expect(try folders.upload(path, in: folder) == nil)
    }
}
