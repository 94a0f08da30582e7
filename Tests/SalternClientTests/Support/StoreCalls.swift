import CSQLite
import Foundation
import Synchronization

/// The system calls by which SQLite changes files. Each asks the life of its store whether it happens: that of the folder
/// in which the file was opened.
enum StoreCalls {
    private static let lives = Mutex<[String: StoreLife]>([:])
    private static let descriptors = Mutex<[Int32: StoreLife]>([:])
    private static let everything = Mutex<StoreLife?>(nil)
    private static let areReplaced = replace()

    /// What is opened in the folder from now on belongs to this life; nil for none.
    /// - Returns: false when this SQLite does not let its system calls be replaced.
    @discardableResult
    static func concern(_ life: StoreLife?, folder: String) -> Bool {
        lives.withLock { $0[folder] = life }
        return areReplaced
    }

    /// Everything belongs to this life.
    /// - Returns: false when this SQLite does not let its system calls be replaced.
    static func concern(_ life: StoreLife) -> Bool {
        everything.withLock { $0 = life }
        return areReplaced
    }

    private typealias Open = @convention(c) (UnsafePointer<CChar>?, Int32, Int32) -> Int32
    private typealias Close = @convention(c) (Int32) -> Int32
    private typealias Write = @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int
    private typealias WriteAt = @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int
    private typealias Truncate = @convention(c) (Int32, off_t) -> Int32
    private typealias Unlink = @convention(c) (UnsafePointer<CChar>?) -> Int32

    private static func replace() -> Bool {
        guard let files = sqlite3_vfs_find(nil), let replace = files.pointee.xSetSystemCall else { return false }
        let open: Open = { path, flags, mode in StoreCalls.open(path, flags, mode) }
        let close: Close = { descriptor in
            // Before somebody else gets the same number.
            _ = StoreCalls.descriptors.withLock { $0.removeValue(forKey: descriptor) }
            return Glibc.close(descriptor)
        }
        let write: Write = { descriptor, bytes, count in
            StoreCalls.around(descriptor, count) { Glibc.write(descriptor, bytes, $0) }
        }
        let writeAt: WriteAt = { descriptor, bytes, count, offset in
            StoreCalls.around(descriptor, count) { pwrite(descriptor, bytes, $0, offset) }
        }
        let truncate: Truncate = { descriptor, size in
            Int32(StoreCalls.around(descriptor, 0) { _ in Int(ftruncate(descriptor, size)) })
        }
        let unlink: Unlink = { path in
            guard let path, let life = StoreCalls.life(path) else { return path.map { Glibc.unlink($0) } ?? -1 }
            return Int32(life.around(0) { _ in Int(Glibc.unlink(path)) })
        }
        // SQLite keeps all of its calls under one type and casts them back.
        let calls: [(String, sqlite3_syscall_ptr)] = [
            ("open", unsafeBitCast(open, to: sqlite3_syscall_ptr.self)),
            ("close", unsafeBitCast(close, to: sqlite3_syscall_ptr.self)),
            ("write", unsafeBitCast(write, to: sqlite3_syscall_ptr.self)),
            ("pwrite", unsafeBitCast(writeAt, to: sqlite3_syscall_ptr.self)),
            ("pwrite64", unsafeBitCast(writeAt, to: sqlite3_syscall_ptr.self)),
            ("ftruncate", unsafeBitCast(truncate, to: sqlite3_syscall_ptr.self)),
            ("unlink", unsafeBitCast(unlink, to: sqlite3_syscall_ptr.self)),
        ]
        // Which of them it uses depends on how it was built.
        let replaced = calls.filter { files.pointee.xGetSystemCall?(files, $0.0) != nil }
        return replaced.count > 4 && replaced.allSatisfy { replace(files, $0.0, $0.1) == SQLITE_OK }
    }

    private static func open(_ path: UnsafePointer<CChar>?, _ flags: Int32, _ mode: Int32) -> Int32 {
        guard let path else { return -1 }
        guard let life = life(path) else { return Glibc.open(path, flags, mode_t(mode)) }
        let makesFile = flags & O_CREAT != 0 && access(path, F_OK) != 0
        let descriptor =
            makesFile
            ? Int32(life.around(0) { _ in Int(Glibc.open(path, flags, mode_t(mode))) })
            : Glibc.open(path, flags, mode_t(mode))
        if descriptor >= 0 { descriptors.withLock { $0[descriptor] = life } }
        return descriptor
    }

    private static func life(_ path: UnsafePointer<CChar>) -> StoreLife? {
        if let life = everything.withLock({ $0 }) { return life }
        let path = String(cString: path)
        guard let end = path.lastIndex(of: "/") else { return nil }
        return lives.withLock { $0[String(path[..<end])] }
    }

    private static func around(_ descriptor: Int32, _ count: Int, _ call: (Int) -> Int) -> Int {
        let life = everything.withLock { $0 } ?? descriptors.withLock { $0[descriptor] }
        return life?.around(count, call) ?? call(count)
    }
}
