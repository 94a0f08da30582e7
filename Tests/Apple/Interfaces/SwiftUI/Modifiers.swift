public import Foundation
public import UniformTypeIdentifiers

/// https://developer.apple.com/documentation/swiftui/view#Modifying-a-view
extension View {
    /// https://developer.apple.com/documentation/swiftui/view/task(priority:_:)
    nonisolated public func task(@_inheritActorContext _ action: @escaping @Sendable () async -> Void) -> some View {
        ModifiedView()
    }

    /// https://developer.apple.com/documentation/swiftui/view/task(id:priority:_:)
    nonisolated public func task(
        id value: some Equatable, @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/alert(_:ispresented:actions:message:)
    nonisolated public func alert(
        _ titleKey: LocalizedStringKey, isPresented: Binding<Bool>, @ViewBuilder actions: () -> some View,
        @ViewBuilder message: () -> some View
    ) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/sheet(ispresented:ondismiss:content:)
    nonisolated public func sheet(
        isPresented: Binding<Bool>, @ViewBuilder content: @escaping () -> some View
    ) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/sheet(item:ondismiss:content:)
    nonisolated public func sheet<Item: Identifiable>(
        item: Binding<Item?>, @ViewBuilder content: @escaping (Item) -> some View
    ) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/toolbar(content:)
    nonisolated public func toolbar(@ViewBuilder content: () -> some View) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/navigationtitle(_:)
    nonisolated public func navigationTitle(_ titleKey: LocalizedStringKey) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/searchable(text:placement:prompt:)
    nonisolated public func searchable(text: Binding<String>) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/disabled(_:)
    nonisolated public func disabled(_ disabled: Bool) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/tag(_:includeoptional:)
    nonisolated public func tag(_ tag: some Hashable) -> some View { ModifiedView() }

    /// https://developer.apple.com/documentation/swiftui/view/fileimporter(ispresented:allowedcontenttypes:oncompletion:)
    nonisolated public func fileImporter(
        isPresented: Binding<Bool>, allowedContentTypes: [UTType],
        onCompletion: @escaping (Result<URL, any Error>) -> Void
    ) -> some View { ModifiedView() }
}
