import CSQLite
import Foundation
import Synchronization

/// Something that happens at one of the system calls by which SQLite writes.
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

    /// Lets it happen at the `call`-th call of this whole process from now on, which is killed in truth: for processes of
    /// their own.
    /// - Returns: What other calls may ask, too; nil when this SQLite does not let its system calls be replaced.
    func happen(at call: Int) -> StoreLife? {
        let life = StoreLife(isReal: true)
        life.arm(self, at: call)
        return StoreCalls.concern(life) ? life : nil
    }
}

/// One process of a device, as far as its store's files can tell.
final class StoreLife: Sendable {
    private struct State {
        var armed: (fault: WriteFault, call: Int)?
        var hasFailed = false
        var hasEnded = false
    }

    private let isReal: Bool
    private let state = Mutex(State())

    /// - Parameter isReal: Whether this process is killed. Otherwise its end is played: what it writes later has no effect.
    init(isReal: Bool = false) { self.isReal = isReal }

    /// Lets something happen at the `call`-th call from now on.
    func arm(_ fault: WriteFault, at call: Int) { state.withLock { $0.armed = (fault, call) } }

    /// Nothing happens from now on.
    /// - Returns: Whether something has happened since the last time.
    func disarm() -> Bool {
        state.withLock { state in
            defer { state = State(hasEnded: state.hasEnded) }
            return state.hasFailed
        }
    }

    /// Whether something has happened.
    var hasFailed: Bool { state.withLock { $0.hasFailed } }

    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Does a call, or what happens in its place.
    /// - Parameter count: How many bytes it writes; 0 for what cannot be done by halves.
    func around(_ count: Int, _ call: (Int) -> Int) -> Int {
        let fault = state.withLock { state -> WriteFault? in
            if state.hasEnded { return .inputOutput }
            state.armed?.call -= 1
            guard let armed = state.armed, armed.call <= 0 else { return nil }
            state.armed = nil
            state.hasFailed = true
            return armed.fault
        }
        switch fault {
        case nil: return call(count)
        case .killBefore?:
            end()
            errno = EIO
        case .killWithin?:
            if count > 0 { _ = call(count / 2) }
            end()
            errno = EIO
        case .killAfter?:
            let result = call(count)
            end()
            return result
        case .diskFull?: errno = ENOSPC
        case .inputOutput?: errno = EIO
        }
        return -1
    }

    /// Ends the process.
    func end() {
        if isReal { kill(getpid(), SIGKILL) }
        state.withLock { $0.hasEnded = true }
    }
}
