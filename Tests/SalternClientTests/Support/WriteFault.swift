import CSQLite
import Foundation
import Synchronization

/// Something that happens at one of the system calls by which SQLite writes. It is of the whole process: for processes of
/// their own.
enum WriteFault: Int, Codable, CaseIterable {
    /// The process is killed before the call.
    case killBefore
    /// The process is killed when half of the bytes are written.
    case killWithin
    /// The process is killed after the call.
    case killAfter
    /// The disk is full, once.
    case diskFull
    /// The disk fails, once.
    case inputOutput

    private static let calls = Atomic(0)
    private static let target = Atomic(0)
    private static let kind = Atomic(0)

    /// Lets it happen at the `call`-th call from now on.
    /// - Returns: false when this SQLite does not let its system calls be replaced.
    func happen(at call: Int) -> Bool {
        Self.kind.store(rawValue, ordering: .relaxed)
        Self.target.store(call, ordering: .relaxed)
        guard let files = sqlite3_vfs_find(nil), let replace = files.pointee.xSetSystemCall else { return false }
        let write: Write = { descriptor, bytes, count in
            WriteFault.around(count) { Glibc.write(descriptor, bytes, $0) }
        }
        let writeAt: WriteAt = { descriptor, bytes, count, offset in
            WriteFault.around(count) { pwrite(descriptor, bytes, $0, offset) }
        }
        let truncate: Truncate = { descriptor, size in
            Int32(WriteFault.around(0) { _ in Int(ftruncate(descriptor, size)) })
        }
        // SQLite keeps all of its calls under one type and casts them back.
        let calls: [(String, sqlite3_syscall_ptr)] = [
            ("write", unsafeBitCast(write, to: sqlite3_syscall_ptr.self)),
            ("pwrite", unsafeBitCast(writeAt, to: sqlite3_syscall_ptr.self)),
            ("pwrite64", unsafeBitCast(writeAt, to: sqlite3_syscall_ptr.self)),
            ("ftruncate", unsafeBitCast(truncate, to: sqlite3_syscall_ptr.self)),
        ]
        // Which of them it uses depends on how it was built.
        let replaced = calls.filter { files.pointee.xGetSystemCall?(files, $0.0) != nil }
        return !replaced.isEmpty && replaced.allSatisfy { replace(files, $0.0, $0.1) == SQLITE_OK }
    }

    private typealias Write = @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int
    private typealias WriteAt = @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int
    private typealias Truncate = @convention(c) (Int32, off_t) -> Int32

    private static func around(_ count: Int, _ call: (Int) -> Int) -> Int {
        guard calls.add(1, ordering: .relaxed).newValue == target.load(ordering: .relaxed) else { return call(count) }
        switch WriteFault(rawValue: kind.load(ordering: .relaxed)) {
        case .killBefore?: kill(getpid(), SIGKILL)
        case .killWithin?:
            _ = call(count / 2)
            kill(getpid(), SIGKILL)
        case .killAfter?:
            _ = call(count)
            kill(getpid(), SIGKILL)
        case .diskFull?:
            errno = ENOSPC
            return -1
        case .inputOutput?:
            errno = EIO
            return -1
        case nil: break
        }
        return call(count)
    }
}
