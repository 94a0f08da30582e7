internal import Foundation

extension Vault {
    /// Advances the age of the store, if the server's clock confirms the local one.
    /// - Returns: The age in seconds. Nil when the two clocks disagree, or no reply had a time; then nothing is
    ///   removed.
    func confirmedAge() throws(VaultError) -> Int64? {
        let moment = settings.now()
        guard api.clock.confirms(moment) else { return nil }
        return try stored { try store.transaction { try store.advanceAge(to: Int64(moment.timeIntervalSince1970)) } }
    }

    /// Removes expired content from the trash, at the end of a successful round.
    func removeAged() throws(VaultError) {
        let before = try stored { try store.number(.age) }
        guard let age = try confirmedAge(), age != before else { return }
        try stored { try store.removeAged(at: age) }
    }
}
