extension VaultCollection {
    /// Returns the contents now, and again after each change and each time the vault is unlocked. While it is locked nothing
    /// comes. A reader that is slow gets the last contents. The sequence ends after a sign-out.
    ///
    /// The vault stays open as long as the sequence is read.
    ///
    /// Example: "List" in docs/app.md.
    public func observe() -> AsyncStream<CollectionContents<Value>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CollectionContents<Value>.self, bufferingPolicy: .bufferingNewest(1))
        // It begins here, so that no change is missed.
        let changes = vault.changes()
        let following = Task {
            await follow(changes) { continuation.yield($0) }
            continuation.finish()
        }
        continuation.onTermination = { _ in following.cancel() }
        return stream
    }

    private func follow(
        _ changes: AsyncStream<Set<ItemID>>, _ onContents: (CollectionContents<Value>) -> Void
    ) async {
        let (nudges, nudge) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        nudge.yield()
        let states = await vault.states()
        await withTaskGroup { group in
            group.addTask {
                for await _ in changes { nudge.yield() }
                nudge.finish()
            }
            group.addTask {
                for await state in states { if case .idle = state { nudge.yield() } }
            }
            for await _ in nudges {
                do throws(VaultError) { onContents(try await contents()) } catch {
                    // Locked: the contents come when it is unlocked.
                }
            }
            group.cancelAll()
        }
    }
}
